"""The relay's HTTP: requests and answers as they stand on the wire. What they mean is not known here; loopback/server.py listens.

Not `http.server`: that one loads the mail package to read headers, and sends head and body in two packets.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, unquote

_LONGEST_LINE = 1 << 16
_MOST_HEADERS = 200
_CHUNK = 1 << 18
_REASONS = {200: "OK", 201: "Created", 206: "Partial Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Too Large"}


class NotHttp(Exception):
    """What came is no request that can be answered and followed by another."""


class RequestBody:
    """What a request carries, read when it is wanted; what nobody wanted is read past."""

    def __init__(self, stream: BinaryIO, headers: Mapping[str, str]) -> None:
        self._stream = stream
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 15:
            raise NotHttp(f"content-length {length[:20]!r}")
        self._left = 0 if self._chunked else int(length)
        self._over = not self._chunked and not self._left

    def pieces(self) -> Iterator[bytes]:
        while not self._over:
            if self._chunked and not self._left:
                size = _line(self._stream).partition(b";")[0].strip()
                try:
                    self._left = int(size, 16)
                except ValueError:
                    raise NotHttp(f"a chunk of {size[:20]!r}") from None
                if not self._left:
                    while _line(self._stream).strip():
                        pass
                    self._over = True
                    return
            data = self._stream.read(min(self._left, _CHUNK))
            if not data:
                raise NotHttp("the body is shorter than announced")
            self._left -= len(data)
            if not self._left:
                if self._chunked:
                    _line(self._stream)
                else:
                    self._over = True
            yield data

    def read(self, most: int) -> bytes | None:
        """All of it; None where that is more than `most`."""
        held, size = [], 0
        for piece in self.pieces():
            size += len(piece)
            if size <= most:
                held.append(piece)
        return b"".join(held) if size <= most else None

    def skip(self) -> None:
        for _ in self.pieces():
            pass


@dataclass(frozen=True, kw_only=True)
class RelayRequest:
    method: str
    path: str  # decoded
    target: str  # as it was sent
    headers: Mapping[str, str]  # lower case
    body: RequestBody
    version: str = "HTTP/1.1"

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))


@dataclass(frozen=True, kw_only=True)
class RelayAnswer:
    status: int = 200
    body: bytes = b"{}"
    kind: str = "application/json"
    file: BinaryIO | None = field(default=None, repr=False)  # instead of a body; closed when it is sent
    size: int = 0  # of that file

    @classmethod
    def of(cls, value: Any, status: int = 200) -> RelayAnswer:
        return cls(status=status, body=json.dumps(value).encode())


def read_request(stream: BinaryIO, proceed: Callable[[], object] = lambda: None) -> RelayRequest | None:
    """The next request, its body not read yet; None: there is none. `proceed` tells a client that waits for leave to send its body."""
    line = _line(stream)
    while line in (b"\r\n", b"\n"):
        line = _line(stream)
    if not line:
        return None
    words = line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise NotHttp(repr(line[:80]))
    headers = _headers(stream)
    if headers.get("expect", "").lower() == "100-continue":
        proceed()
    target, body = words[1], RequestBody(stream, headers)
    path = unquote(target.partition("?")[0])
    return RelayRequest(method=words[0].upper(), path=path, target=target, headers=headers, body=body, version=words[2])


def wants_another(request: RelayRequest) -> bool:
    """Whether its client may send one more on the same connection."""
    return request.version != "HTTP/1.0" and request.headers.get("connection", "").lower() != "close"


def send_answer(connection: socket.socket, answer: RelayAnswer, *, keep: bool, head_only: bool) -> None:
    length = answer.size if answer.file else len(answer.body)
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Answer')}\r\nContent-Type: {answer.kind}\r\nContent-Length: {length}\r\n"
        f"Cache-Control: no-store\r\nConnection: {'keep-alive' if keep else 'close'}\r\n\r\n"
    ).encode("latin-1", "replace")
    if answer.file is None:
        connection.sendall(head if head_only else head + answer.body)
        return
    with answer.file as file:
        connection.sendall(head)
        left = 0 if head_only else answer.size
        while left > 0:
            data = file.read(min(left, _CHUNK))
            if not data:
                raise NotHttp("the file became shorter")
            connection.sendall(data)
            left -= len(data)


def _line(stream: BinaryIO) -> bytes:
    line = stream.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise NotHttp("an unterminated line")
    return line


def _headers(stream: BinaryIO) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = _line(stream)
        if line in (b"\r\n", b"\n"):
            return found
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise NotHttp(repr(line[:80]))
        found[name.strip().lower()] = value.strip()
    raise NotHttp("unterminated headers")
