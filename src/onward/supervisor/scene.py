"""The scene of a leg: what every part of its life needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from onward.clock import Clock
from onward.model.job import Allocation
from onward.model.spec import RunSpec
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.schedulers.base import Scheduler
from onward.supervisor.handover import Handover


@dataclass(frozen=True, kw_only=True)
class Requeue:
    """The leg that this very job is to be next, and the job's name."""

    leg: int
    name: str


@dataclass(kw_only=True)
class Scene:
    dir: RunDir
    spec: RunSpec
    leg: int
    scheduler: Scheduler
    allocation: Allocation
    clock: Clock
    journal: Journal
    requeue: Requeue | None = None  # this job goes back into the queue when its process ends

    def handover(self, *, journal: Journal | None = None, patience: float = 120.0) -> Handover:
        return Handover(
            dir=self.dir,
            scheduler=self.scheduler,
            journal=journal or self.journal,
            clock=self.clock,
            own=self.allocation.job,
            patience=patience,
        )
