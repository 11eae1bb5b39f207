"""How much one may ask for: so many requests a second, so many streams at once. Counted in memory, for each server by itself."""

from __future__ import annotations

import math
from collections import Counter

from onward.api.access.caller import ApiCaller
from onward.clock import Clock
from onward.errors import TooMany

BURST = 10.0  # seconds' worth that may come at once
_ROOM = 10_000  # callers that are kept in mind


class RateLimit:
    """A bucket for each caller, filled by so many a second. A rate of 0 bounds nothing."""

    def __init__(self, rate: float, *, room: float, clock: Clock) -> None:
        self._rate = rate
        self._room = room
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was so

    def wait(self, key: str) -> float:
        """Seconds until there is one to take; 0: there is one now."""
        return 0.0 if self._rate <= 0 else max(1.0 - self._left(key), 0.0) / self._rate

    def take(self, key: str) -> float:
        """The same, and it is taken if it is there."""
        if self._rate <= 0:
            return 0.0
        left = self._left(key)
        if left < 1.0:
            return (1.0 - left) / self._rate
        if len(self._buckets) >= _ROOM:
            self._sweep()
        self._buckets[key] = (left - 1.0, self._clock.now())
        return 0.0

    def _left(self, key: str) -> float:
        now = self._clock.now()
        left, at = self._buckets.get(key, (self._room, 0.0))
        if at > now:  # the clock was set back: count from here
            self._buckets[key] = (left, at) = (left, now)
        return min(left + (now - at) * self._rate, self._room)

    def _sweep(self) -> None:
        """Full buckets say nothing. Where all are in use, all begin anew: better too much let in than memory without end."""
        self._buckets = {key: held for key, held in list(self._buckets.items()) if self._left(key) < self._room}
        if len(self._buckets) >= _ROOM:
            self._buckets.clear()


def seconds(wait: float) -> str:
    """For a Retry-After header."""
    return str(max(math.ceil(wait), 1))


class StreamLimit:
    """Open streams by user. A person is one, by whatever tokens and sessions."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def begin(self, who: ApiCaller) -> str:
        """A place for one more; hand what this answers to `end`."""
        key = f"user {who.name}" if who.person and who.name else f"token {who.token}"
        if self._open[key] >= self._most:
            raise TooMany(
                f"{who.name or 'this token'} has {self._most} streams open", hint="close one; one live stream can follow all runs"
            )
        self._open[key] += 1
        return key

    def end(self, key: str) -> None:
        self._open[key] -= 1
        if self._open[key] <= 0:
            del self._open[key]
