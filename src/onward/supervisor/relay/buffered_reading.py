"""Reading from a connection of which some bytes have been read already."""

from __future__ import annotations

import io
import select
import socket
from typing import Any


class PartlyReadStream(io.RawIOBase):
    """First the bytes that came before, then what the connection brings."""

    def __init__(self, connection: socket.socket, before: bytes) -> None:
        self._connection = connection
        self._before = memoryview(before)
        self._wait = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._before:
            size = min(len(buffer), len(self._before))
            buffer[:size], self._before = self._before[:size], self._before[size:]
            return size
        if not self._wait and not readable_within(self._connection, 0):
            return None
        return self._connection.recv_into(buffer)

    def has_more(self, stream: Any, *, within: float) -> bool:
        """Whether `stream`, which reads from here, has bytes, gets some in so many seconds, or has come to its end."""
        self._wait = False
        try:
            if stream.peek(1):
                return True
        finally:
            self._wait = True
        return readable_within(self._connection, within)


def readable_within(connection: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
