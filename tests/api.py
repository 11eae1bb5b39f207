"""Asking the server without a network: a request goes to the gate as the HTTP parser would hand it over, target and all."""

from __future__ import annotations

import asyncio
import json as jsonlib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from onward.api.access.gate import App


@dataclass(kw_only=True)
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return jsonlib.loads(self.body)


class Client:
    """`token` goes as a bearer token; `host` and further headers as they are given."""

    def __init__(self, app: App, token: str | None = None, *, host: str = "localhost:8765") -> None:
        self._app = app
        self._token = token
        self._host = host

    def get(self, target: str, **others: Any) -> Answer:
        return self.ask("GET", target, **others)

    def post(self, target: str, json: Any = None, **others: Any) -> Answer:
        return self.ask("POST", target, json=json, **others)

    def ask(
        self, method: str, target: str, *, json: Any = None, body: bytes | None = None, headers: Mapping[str, str | None] | None = None
    ) -> Answer:
        sent = {"host": self._host, **({"authorization": f"Bearer {self._token}"} if self._token else {})}
        if json is not None:
            body = jsonlib.dumps(json).encode()
            sent["content-type"] = "application/json"
        if body is not None:
            sent["content-length"] = str(len(body))
        full = {name: value for name, value in {**sent, **(headers or {})}.items() if value is not None}
        path, _, query = target.partition("?")
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in full.items()],
            "server": ("127.0.0.1", 8765),
            "client": ("127.0.0.1", 50000),
        }
        return asyncio.run(_ask(self._app, scope, body or b""))


async def _ask(app: App, scope: MutableMapping[str, Any], body: bytes) -> Answer:
    answer = Answer()
    sent = False

    async def receive() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # the client stays; whoever waits for it to leave is cancelled
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer
