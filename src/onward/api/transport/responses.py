"""Answers at the level of ASGI: problems, whole bodies, the headers that every answer carries, and the bound on what is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException

from onward.api.transport.problems import MLFLOW, Problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
GUARDS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", CSP.encode()),
    (b"cache-control", b"no-store"),
)

_MB = 1 << 20
_JSON_LIMIT = 1 * _MB
_RECORDS_LIMIT = 16 * _MB


class BodyTooLarge(HTTPException):
    """The body is longer than its path allows. Of a kind that what reads bodies for routes lets through."""

    def __init__(self) -> None:
        super().__init__(413, "the body is too long")


class GuardedSend:
    """Sends on, with the headers of every answer added and the status remembered."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._whole_length = False
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._whole_length = any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
            headers = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            message["headers"] = headers + [(name, value) for name, value in GUARDS if name not in there]
        await self._send(message)

    async def cut_off(self, problem: Problem, path: str) -> None:
        """End an answer early: with a problem where none has begun, with its end where its length was not promised.

        Else with nothing: the server then closes the connection, and the client sees that the rest is missing."""
        if not self.status:
            await send_problem(self, problem, path)
        elif not self._whole_length:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def guarded(send: Send) -> GuardedSend:
    return send if isinstance(send, GuardedSend) else GuardedSend(send)


async def send_whole(send: Send, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    there = {name for name, _ in headers}
    full = [*headers, (b"content-length", b"%d" % len(body)), *((name, value) for name, value in GUARDS if name not in there)]
    await send({"type": "http.response.start", "status": status, "headers": full})
    await send({"type": "http.response.body", "body": body})


async def send_problem(send: Send, problem: Problem, path: str) -> None:
    body, headers = problem.answer(path)
    await send_whole(send, problem.status, body, [(name.encode(), value.encode()) for name, value in headers.items()])


def body_limit(path: str) -> int | None:
    """How long a body may be. Files are bounded where they are written, not here."""
    if "/artifacts" in path:
        return None
    return _RECORDS_LIMIT if path.endswith(("/records", "/pieces", "/packed-pieces")) or path.startswith(MLFLOW) else _JSON_LIMIT


def limited(receive: Receive, headers: dict[bytes, bytes], path: str) -> tuple[Receive, Problem | None]:
    """The body, up to its limit; a problem at once where the request itself says that it is longer."""
    limit = body_limit(path)
    if limit is None:
        return receive, None
    said = headers.get(b"content-length")
    if said is not None and said.isdigit():
        too_much = Problem(status=413, detail=f"the body is {int(said)} bytes long; at most {limit} are accepted", hint="send it in parts")
        return receive, too_much if int(said) > limit else None
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise BodyTooLarge
        return message

    return counted, None


async def read_body(receive: Receive, limit: int) -> bytes:
    """All of it; usually it is there in one piece."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return _checked(body, limit)
    parts = [body]
    taken = len(body)
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        taken += len(parts[-1])
        if taken > limit:
            raise BodyTooLarge
    return b"".join(parts)


def _checked(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise BodyTooLarge
    return body
