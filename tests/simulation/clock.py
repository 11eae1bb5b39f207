"""A clock that jumps from event to event."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class SimClock:
    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.until(self._now + seconds)

    def at(self, time: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self._now), next(self._count), do))

    def next_event(self) -> float:
        return self._events[0][0] if self._events else float("inf")

    def until(self, time: float) -> None:
        """Everything that happens up to then happens, in order."""
        while self._events and self._events[0][0] <= time:
            self._now, _, do = heapq.heappop(self._events)
            do()
        self._now = max(self._now, time)

    def clear(self) -> None:
        self._events.clear()
