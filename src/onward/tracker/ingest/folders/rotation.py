"""Rounds: which folders of one parent to look at now.

A folder is awake while its run may change, and at rest once that is over. Those awake are looked at in every round. Of those at rest, a
few have their turn in each round, so that whatever changed them is found in the end. New folders are found by listing the parent,
which is done when the parent itself has changed. So a round over 100,000 old runs costs no more than one over a hundred.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

SWEEP = 10  # folders at rest that have their turn in each round
_AGAIN = 2  # more listings after a change: an entry may come within the same tick of the disk's clock
_LIST_EVERY = 600  # rounds: for file systems that do not tell that a folder changed

FolderMark = tuple[int, int]  # when the journals and the spool of a folder at rest had changed last


class FolderRotation:
    def __init__(self, parent: Path, names: Callable[[Path], list[str]], *, resting: Iterable[str] = ()) -> None:
        """`names`: lists what counts in the parent, in order. `resting`: those that are known to be over."""
        self.parent = parent
        self._names = names
        self._changed = -1
        self._listings = 0  # that are due
        self._rounds = 0
        self._awake: dict[str, None] = {}
        self._resting: dict[str, FolderMark | None] = dict.fromkeys(resting)
        self._turns: list[str] = []  # of those at rest, who is next; the last comes first

    def due(self) -> list[str]:
        """Begin a round: the folders to look at. Raises OSError where the parent cannot be listed."""
        self._list_if_changed()
        return [*self._awake, *self._next_turns()]

    def rest(self, name: str, mark: FolderMark | None = None) -> None:
        self._awake.pop(name, None)
        self._resting[name] = mark

    def wake(self, name: str) -> None:
        if name in self._resting:
            del self._resting[name]
            self._awake[name] = None

    def rests(self, name: str) -> bool:
        return name in self._resting

    def mark(self, name: str) -> FolderMark | None:
        """As it was left, if it is at rest and was looked at since this process began."""
        return self._resting.get(name)

    def knows(self, name: str) -> bool:
        return name in self._awake or name in self._resting

    @property
    def awake(self) -> list[str]:
        return list(self._awake)

    def _list_if_changed(self) -> None:
        try:
            changed = os.stat(self.parent).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            changed = 0
        self._rounds += 1
        if changed != self._changed:
            self._listings = 1 + _AGAIN
        if self._listings or self._rounds % _LIST_EVERY == 0:
            self._take(self._names(self.parent) if changed else [])
            self._changed = changed
            self._listings = max(self._listings - 1, 0)

    def _take(self, names: list[str]) -> None:
        there = set(names)
        for known in (self._awake, self._resting):
            for name in [name for name in known if name not in there]:
                del known[name]
        for name in names:
            if name not in self._resting:
                self._awake.setdefault(name)

    def _next_turns(self) -> list[str]:
        chosen: list[str] = []
        fresh = False
        while len(chosen) < min(SWEEP, len(self._resting)):
            if not self._turns:
                if fresh:
                    break
                self._turns, fresh = list(reversed(self._resting)), True
            name = self._turns.pop()
            if name in self._resting and name not in chosen:
                chosen.append(name)
        return chosen
