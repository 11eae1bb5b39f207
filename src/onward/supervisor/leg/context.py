"""The scene of a leg: what every part of its life needs to know."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from onward.clock import Clock
from onward.model.events import Event
from onward.model.job import Allocation
from onward.model.spec import RunSpec
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.schedulers.base import Scheduler
from onward.supervisor.leg.handover import Handover
from onward.supervisor.leg.storage_wait import wait_for_storage

T = TypeVar("T")

_LAST_SECONDS = 2.0  # before the deadline


@dataclass(frozen=True, kw_only=True)
class JobRequeue:
    """The leg that this very job is to be next, and the job's name."""

    leg: int
    name: str


@dataclass(kw_only=True)
class LegContext:
    dir: RunDir
    spec: RunSpec
    leg: int
    scheduler: Scheduler
    allocation: Allocation
    clock: Clock
    journal: Journal
    requeue: JobRequeue | None = None  # this job goes back into the queue when its process ends
    patience: float = 0.0  # seconds to wait for the run's folder, at the leg's start and again at its end
    waited: float = 0.0  # seconds that jobs before this one have waited for it, and could not begin this leg
    storage_until: float = 0.0  # unix seconds: until then the run's folder is waited for
    finished: bool = False  # its training is complete and stored: known here before the run's folder takes it
    latest: float | None = None  # unix seconds: when the run has had its total-time; the deadline is never later
    history: Sequence[Event] = ()  # all that the journals held when the training started
    ending: Callable[[], bool] = lambda: False  # the scheduler ends this job: nothing is waited for any more

    def wait_for_storage_anew(self) -> None:
        """From now on, for as long as this leg can afford. Not into its last seconds."""
        now = self.clock.now()
        last = self.allocation.deadline - _LAST_SECONDS if self.allocation.deadline else math.inf
        self.storage_until = min(now + self.patience, max(last, now))

    def end_by(self, latest: float) -> None:
        """Whatever the job has."""
        self.latest = latest
        self.allocation = replace(self.allocation, deadline=min(self.allocation.deadline or latest, latest))

    def patiently(self, what: str, act: Callable[[], T]) -> T:
        """Do what needs the run's folder, and may be repeated; wait while its storage is full, read-only or away."""
        return wait_for_storage(what, act, clock=self.clock, until=self.storage_until, ending=self.ending)

    def handover(self, *, journal: Journal | None = None, patience: float = 120.0) -> Handover:
        return Handover(
            dir=self.dir,
            scheduler=self.scheduler,
            journal=journal or self.journal,
            clock=self.clock,
            own=self.allocation.job,
            patience=patience,
        )
