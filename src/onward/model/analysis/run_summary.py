"""Standing: what a list says of a run in one line. Pure; stored beside the run's row whenever its journals change."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onward.model.analysis.effort import newest_published, queue_waits
from onward.model.analysis.why import next_action, why
from onward.model.run import Run, RunState

SILENT = 300.0  # seconds: a running leg writes a sample every 120 s or more often, and a network file system may show it a minute late


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    why: str = ""
    next: str = ""
    legs_done: int = 0  # legs that took place and ended
    legs_max: int | None = None
    saved_step: int | None = None  # the newest checkpoint
    saved_at: float | None = None
    queued_at: float | None = None  # since when the newest leg waits, or waited
    begun_at: float | None = None  # when that wait was over; None: it goes on
    trains: bool = False  # its newest leg has started the training, and has not ended
    gpu_use: float | None = None  # 0 to 1, the mean of the last minutes; from samples, not from journals

    def silent_since(self, heard: float, now: float) -> float | None:
        """Since when nothing of a leg that trains was heard, where that is unusual. `heard`: when anything of it last was."""
        return heard if self.trains and now - heard > SILENT else None

    def queue_wait(self, now: float, *, over: bool) -> float | None:
        if self.queued_at is None:
            return None
        if self.begun_at is None:
            return None if over else max(0.0, now - self.queued_at)
        return max(0.0, self.begun_at - self.queued_at)


def trains(run: Run) -> bool:
    """Whether its newest leg is at work, by what that leg last told."""
    leg = run.last_leg
    return run.state is RunState.RUNNING and leg is not None and bool(leg.claimed and leg.started) and not leg.end


def summarise_run(run: Run) -> RunSummary:
    """From the journals alone: what the scheduler says of a queued job is added by whoever asks it."""
    newest = newest_published(run)
    wait = max(queue_waits(run, now=math.inf), key=lambda w: w.leg, default=None)
    return RunSummary(
        why=why(run, None, unheard=""),
        next=next_action(run),
        legs_done=sum(1 for leg in run.legs.values() if leg.claimed and leg.end),
        legs_max=run.limits.max_legs,
        saved_step=newest.step if newest else None,
        saved_at=newest.at if newest else None,
        queued_at=wait.since if wait else None,
        begun_at=wait.until if wait else None,
        trains=trains(run),
    )


def moving_mean(before: float | None, before_at: float | None, value: float, at: float, *, over: float = 300.0) -> float:
    """The mean of about the last `over` seconds, from the one before and a new value."""
    if before is None or before_at is None or at <= before_at:
        return value if before is None else before
    return before + (value - before) * (1 - math.exp(-(at - before_at) / over))
