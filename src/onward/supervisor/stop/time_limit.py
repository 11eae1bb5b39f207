"""When this job ends, and how much warning it gets: the limit may be moved by an administrator, and the grace time is the site's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from onward.clock import Clock
from onward.supervisor.background import Repeating, never_hurts_training

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0  # a call to the controller for each job, so not often
_MOVED = 30.0  # seconds: less is the scheduler's rounding
_CURRENT = 60.0  # seconds for which an answer is good enough to stop a training by
_AHEAD, _PATIENCE = 30.0, 15.0  # seconds: how long before it is needed the limit is asked for, and how long past that it is waited for

Ask = Callable[[], float | None]


class TimeLimit:
    """Asks the scheduler now and then, in a thread: a controller that does not answer holds up nobody, and changes nothing."""

    def __init__(
        self,
        deadline: float | None,
        clock: Clock,
        *,
        end_time: Ask = lambda: None,
        grace: Ask = lambda: None,
        latest: float | None = None,
    ) -> None:
        self.deadline = deadline
        self._latest = latest  # a limit that is moved beyond this changes nothing
        self.grace: float | None = None  # seconds between the notice of a preemption and the kill; None: not known
        self.news = ""  # a limit that was moved, in words
        self._clock = clock
        self._end_time = end_time
        self._ask_grace: Ask | None = grace
        self._thread: Repeating | None = None
        self._looked = clock.now()
        self._checking: float | None = None  # since when

    def watch(self) -> None:
        self._thread = Repeating("checking for a moved time limit", self.look, every=LOOK_SECONDS)

    def is_current(self, now: float, *, needed_at: float) -> bool:
        """Whether the limit may be acted on. Shortly before it is needed it is asked for once more: it may have been moved since, and of
        a job that was suspended it has been. A controller that does not answer is not waited for."""
        if self._thread is None or now < needed_at - _AHEAD or now - self._looked < _CURRENT:
            return True
        since = self._checking
        if since is None:
            since = self._checking = now
            threading.Thread(target=self._look_safely, name="checking the time limit", daemon=True).start()
        return now - max(since, needed_at) >= _PATIENCE

    def _look_safely(self) -> None:
        with never_hurts_training("checking the time limit"):
            self.look()

    def look(self) -> None:
        try:
            self._look()
        finally:
            self._looked, self._checking = self._clock.now(), None

    def _look(self) -> None:
        if self._ask_grace:
            self.grace, self._ask_grace = self._ask_grace(), None
        found = self._end_time() if self.deadline is not None else None
        if found is None or self.deadline is None or found <= self._clock.now():
            return
        found = found if self._latest is None else min(found, self._latest)
        moved = found - self.deadline
        if abs(moved) >= _MOVED:
            self.news = f"the job's time limit was moved by {moved / 60:+.0f} min"
            log.info("%s", self.news)
            self.deadline = found

    def end(self, *, within: float) -> None:
        if self._thread:
            self._thread.stop(within=within)
