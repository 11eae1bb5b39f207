"""When this job ends, and how much warning it gets: the limit may be moved by an administrator, and the grace time is the site's."""

from __future__ import annotations

import logging
from collections.abc import Callable

from onward.clock import Clock
from onward.supervisor.watchers import Repeating

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0  # a call to the controller for each job, so not often
_MOVED = 30.0  # seconds: less is the scheduler's rounding

Ask = Callable[[], float | None]


class TimeLimit:
    """Asks the scheduler now and then, in a thread: a controller that does not answer holds up nobody, and changes nothing."""

    def __init__(self, deadline: float | None, clock: Clock, *, end_time: Ask = lambda: None, grace: Ask = lambda: None) -> None:
        self.deadline = deadline
        self.grace: float | None = None  # seconds between the notice of a preemption and the kill; None: not known
        self.news = ""  # a limit that was moved, in words
        self._clock = clock
        self._end_time = end_time
        self._ask_grace: Ask | None = grace
        self._thread: Repeating | None = None

    def watch(self) -> None:
        self._thread = Repeating("looking for a moved time limit", self.look, every=LOOK_SECONDS)

    def look(self) -> None:
        if self._ask_grace:
            self.grace, self._ask_grace = self._ask_grace(), None
        found = self._end_time() if self.deadline is not None else None
        if found is None or self.deadline is None or found <= self._clock.now():
            return
        moved = found - self.deadline
        if abs(moved) >= _MOVED:
            self.news = f"the job's time limit was moved by {moved / 60:+.0f} min"
            log.info("%s", self.news)
            self.deadline = found

    def end(self) -> None:
        if self._thread:
            self._thread.stop()
