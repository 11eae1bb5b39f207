"""Time in which this process did not run: its job was suspended, or the machine was."""

from __future__ import annotations

import time
from collections.abc import Callable

_LEAST = 60.0  # seconds: a slow disk alone takes less


class SuspensionClock:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def seconds(self) -> float:
        """Since the last call, where that is longer than any work between two calls; else 0."""
        now = self._clock()
        gap, self._last = now - self._last, now
        return gap if gap >= _LEAST else 0.0
