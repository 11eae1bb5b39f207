"""Standing: what a list says of a run in one line. Pure; stored beside the run's row whenever its journals change."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onward.model.analysis.effort import newest_published, queue_waits
from onward.model.analysis.why import next_action, why
from onward.model.run import Run


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
    gpu_use: float | None = None  # 0 to 1, the mean of the last minutes; from samples, not from journals

    def queue_wait(self, now: float, *, over: bool) -> float | None:
        if self.queued_at is None:
            return None
        if self.begun_at is None:
            return None if over else max(0.0, now - self.queued_at)
        return max(0.0, self.begun_at - self.queued_at)


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
    )


def moving_mean(before: float | None, before_at: float | None, value: float, at: float, *, over: float = 300.0) -> float:
    """The mean of about the last `over` seconds, from the one before and a new value."""
    if before is None or before_at is None or at <= before_at:
        return value if before is None else before
    return before + (value - before) * (1 - math.exp(-(at - before_at) / over))
