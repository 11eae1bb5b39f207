"""HTTP on the wire: uvicorn's parser, with two habits of ours.

Headers and body of an answer leave together: on the hot paths a second write is a tenth of the cost of a request. And what the parser would
quietly drop of a target (what follows a `#`, the host of one that names a host) is left in, for the gate to see and refuse.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_ENOUGH = 1 << 16  # bytes that need not wait for more


class Together:
    """A transport that writes at the end of the loop's round what was written during it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= _ENOUGH:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            data, self._waiting, self._size = b"".join(self._waiting), [], 0
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Wire(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Together(transport, self.loop))  # type: ignore[arg-type]

    def on_url(self, url: bytes) -> None:
        whole = url if self.url or url.startswith(b"/") else b"/#" + url
        super().on_url(whole.replace(b"#", b"%23"))
