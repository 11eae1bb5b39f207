"""Connections on which no token has been shown yet: only so many, of one address and in all. The oldest goes when one too many comes.

Whoever holds hundreds of silent connections so closes their own; a client that says what it wants is answered before its turn comes.
"""

from __future__ import annotations

import resource
from collections import Counter
from typing import Protocol

_MOST = 256
_LEAST = 16


class UnidentifiedConnection(Protocol):
    def is_answered(self) -> bool:
        """Whether an answer to it is being worked on. If so, it stays."""

    def send_away(self) -> None: ...


class UnidentifiedConnections:
    def __init__(self, *, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each  # of one address
        self._here: dict[UnidentifiedConnection, str] = {}  # with its address; the oldest first
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._here)

    def add(self, stranger: UnidentifiedConnection, address: str) -> None:
        self._here[stranger] = address
        self._by_address[address] += 1
        if self._by_address[address] > self._most_each:
            self._send_one_away(address, newest=stranger)
        elif len(self._here) > self._most:
            self._send_one_away(self._by_address.most_common(1)[0][0], newest=stranger)

    def remove(self, stranger: UnidentifiedConnection) -> None:
        """It is gone, or known now."""
        address = self._here.pop(stranger, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _send_one_away(self, address: str, *, newest: UnidentifiedConnection) -> None:
        waiting = (one for one, its in self._here.items() if its == address and not one.is_answered())
        chosen = next(waiting, newest)
        self.remove(chosen)
        chosen.send_away()


def connections_for_this_process() -> UnidentifiedConnections:
    """No more than a quarter of the files that this process may have open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if files == resource.RLIM_INFINITY else min(max(files // 4, _LEAST), _MOST)
    return UnidentifiedConnections(most=most, most_each=most // 2)
