"""HTTP on the wire: uvicorn's parser, with four habits of ours.

Headers and body of an answer leave together: on the hot paths a second write is a tenth of the cost of a request. What the parser would
quietly drop of a target (what follows a `#`, the host of one that names a host) is left in, for the gate to see and refuse. And who sends
headers without end, or stops in the middle of a request, is not waited for, and of connections that have shown no token yet there are
only so many: none of this needs a token, so nobody else could bound it.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onward.api.transport.unidentified_connections import UnidentifiedConnections

ADMITTED = "onward.admitted"  # in a request's scope: its token is known
_ENOUGH = 1 << 16  # bytes that need not wait for more
_LONGEST_HEAD = 1 << 16  # bytes of a request before its body
_REFUSAL = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class CoalescingTransport:
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


class AwaitedPart(Enum):
    """What is waited for of a request."""

    FIRST = "its first byte"
    HEAD = "the rest of its headers"
    BODY = "the rest of its body"
    NONE = "nothing: it is complete"


class OnwardHttpProtocol(HttpToolsProtocol):
    patience = 30.0  # seconds: for all of the headers, for the next piece of a body
    first_patience = 10.0  # for the first byte of all
    strangers = UnidentifiedConnections(most=256, most_each=256)  # a server has its own

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._part = AwaitedPart.FIRST
        self._begun = False  # a request, by what was just read
        self._head = 0  # bytes
        self._heard = self.loop.time()
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(self._patience(), self._look)
        super().connection_made(CoalescingTransport(transport, self.loop))  # type: ignore[arg-type]
        self.strangers.add(self, self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.strangers.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._begun = False
        super().data_received(data)
        if self._part is AwaitedPart.NONE:
            if not self.cycle.response_complete:
                return  # the usual case
            self._part, self._heard = AwaitedPart.FIRST, self.loop.time()  # what came was answered before it was whole
        elif self._part is AwaitedPart.HEAD and not self._begun:
            self._head += len(data)
            if self._head > _LONGEST_HEAD:
                self._refuse(b"431 Request Header Fields Too Large")
        elif self._part is AwaitedPart.BODY and not self.cycle.response_complete:
            self._heard = self.loop.time()
        if self._timer is None:
            self._timer = self.loop.call_later(self._patience(), self._look)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part, self._begun, self._head, self._heard = AwaitedPart.HEAD, True, 0, self.loop.time()

    def on_url(self, url: bytes) -> None:
        whole = url if self.url or url.startswith(b"/") else b"/#" + url
        super().on_url(whole.replace(b"#", b"%23"))

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._part = AwaitedPart.BODY

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._part = AwaitedPart.NONE

    def on_response_complete(self) -> None:
        if self.cycle.scope.get(ADMITTED):
            self.strangers.remove(self)
        super().on_response_complete()

    def is_answered(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def send_away(self) -> None:
        self.transport.close()

    def _patience(self) -> float:
        return min(self.first_patience, self.patience) if self._part is AwaitedPart.FIRST else self.patience

    def _look(self) -> None:
        """Has the rest of a request come, or is it on its way?"""
        self._timer = None
        if self._part is AwaitedPart.NONE or self.transport.is_closing():
            return
        left = self._heard + self._patience() - self.loop.time()
        if left <= 0 and not self._keep_it_waiting():
            self._refuse(b"408 Request Timeout")
            return
        self._timer = self.loop.call_later(left if left > 0 else self._patience(), self._look)

    def _keep_it_waiting(self) -> bool:
        """It is we who do not read on."""
        if self._part is not AwaitedPart.BODY or self.cycle.response_complete:
            return False
        return self.flow.read_paused or self.cycle.waiting_for_100_continue

    def _refuse(self, status: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._part is AwaitedPart.HEAD and (self.cycle is None or self.cycle.response_complete):  # else this were no answer to it
            self.transport.write(_REFUSAL % status)
        self.transport.close()
