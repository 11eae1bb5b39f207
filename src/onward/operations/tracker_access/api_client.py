"""Asking the tracker's server: one request, one answer, and errors in our own words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode

from onward.errors import Conflict, HostUnreachable, NotAllowed, NotFound, NotOffered, OnwardError
from onward.supervisor.telemetry.tracker_server import TrackerConnection, TrackerUnreachable

_KINDS: Mapping[int, type[OnwardError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict, 501: NotOffered}

Query = Mapping[str, str | int | bool | Sequence[str]]


class ApiCalls(Protocol):
    """What a server is, as far as the screen needs it."""

    url: str

    def get(self, path: str, query: Query | None = None) -> Any: ...

    def raw(self, path: str, query: Query | None = None) -> bytes: ...

    def post(self, path: str, body: Any) -> Any: ...


class ApiClient:
    def __init__(self, url: str, token: str, *, timeout: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._upstream = TrackerConnection(self.url, token)
        self._timeout = timeout

    def get(self, path: str, query: Query | None = None) -> Any:
        return _json(self._ask("GET", path, query, None))

    def raw(self, path: str, query: Query | None = None) -> bytes:
        return self._ask("GET", path, query, None)

    def post(self, path: str, body: Any) -> Any:
        return _json(self._ask("POST", path, None, json.dumps(body).encode()))

    def _ask(self, method: str, path: str, query: Query | None, body: bytes | None) -> bytes:
        target = f"{path}?{urlencode(_words(query), doseq=True)}" if query else path
        try:
            status, data, _ = self._upstream.call(method, target, body, timeout=self._timeout)
        except TrackerUnreachable as error:
            raise HostUnreachable(f"the server at {self.url} does not answer: {error}", hint="is `onward up` running there?") from error
        if status >= 400:
            answer = _json(data)
            words = answer.get("detail") if isinstance(answer, dict) else None
            raise _KINDS.get(status, OnwardError)(f"the server says: {words or status}")
        return data


def _words(query: Query) -> dict[str, Any]:
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return {}
