"""Finish: when a run will likely be done, at its pace, with the legs and the queue waits that are still before it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onward.model.analysis.effort import queue_waits
from onward.model.quantity import counted, duration_text
from onward.model.run import Run


@dataclass(frozen=True, kw_only=True)
class TrainingPace:
    """How far the training is, and how fast it went lately."""

    step: int | None = None
    total: int | None = None
    rate: float | None = None  # steps a second, of the recent past
    at: float | None = None  # when the newest step was logged

    @property
    def fraction(self) -> float | None:
        if self.step is None or not self.total:
            return None
        return max(0.0, min(1.0, (self.step + 1) / self.total))

    @property
    def left(self) -> float | None:
        """Seconds of training that are left."""
        if self.step is None or not self.total or not self.rate or self.rate <= 0:
            return None
        return max(0, self.total - 1 - self.step) / self.rate


@dataclass(frozen=True, kw_only=True)
class Eta:
    at: float  # unix seconds
    training: float  # seconds of it that are left
    waiting: float  # seconds expected in queues
    legs: int  # further ones
    words: str  # what it was worked out from, or why it will not be reached


def estimate_eta(run: Run, pace: TrainingPace, *, now: float) -> Eta | None:
    """None where the run is over, or nothing tells how much is left."""
    left = pace.left
    if run.closed or left is None:
        return None
    last = run.last_leg
    working = last is not None and last.end is None and last.claimed is not None
    begun = pace.at if working and pace.at is not None else now
    beyond = left - _here(run, left, begun) if working else left
    whole = _leg_time(run) or beyond
    legs = math.ceil(beyond / whole) if beyond > 0 else 0 if working else 1
    past = queue_waits(run, now=now)
    usual = sum((w.until or now) - w.since for w in past) / len(past) if past else 0.0
    waiting = usual * legs
    if past and past[-1].until is None:  # part of the first wait is behind it
        waiting = max(0.0, waiting - (now - past[-1].since))
    return Eta(
        at=begun + left + waiting + _startup(run) * legs,
        training=left,
        waiting=waiting,
        legs=legs,
        words=_words(run, left, legs, usual, len(past)),
    )


def _here(run: Run, left: float, begun: float) -> float:
    """Seconds of what is left that the leg at work has room for."""
    last = run.last_leg
    deadline = last.claimed.deadline if last and last.claimed else None
    return left if deadline is None else min(left, max(0.0, deadline - begun))


def _leg_time(run: Run) -> float | None:
    """Seconds of training in a whole leg."""
    if not run.resources.time:
        return None
    return max(60.0, run.resources.time - _startup(run))


def _startup(run: Run) -> float:
    """Seconds a leg took, on average, until its training ran."""
    took = [leg.started - leg.claimed.at for leg in run.legs.values() if leg.claimed and leg.started is not None]
    return sum(took) / len(took) if took else 0.0


def _words(run: Run, left: float, legs: int, usual: float, waits_seen: int) -> str:
    used = len([leg for leg in run.legs.values() if leg.claimed and leg.number >= run.first_leg])
    if used + legs > run.limits.max_legs:
        return f"at this pace it needs {used + legs} legs, and max-legs is {run.limits.max_legs}"
    spent = sum((leg.ended or leg.claimed.at) - leg.claimed.at for leg in run.legs.values() if leg.claimed and leg.number >= run.first_leg)
    if run.limits.total_time and spent + left > run.limits.total_time:
        return "at this pace it needs more than its total-time"
    if not legs:
        return "at the pace of the last steps, within this leg"
    each = f", each after a wait of {duration_text(usual)}, the mean of {waits_seen} so far" if waits_seen and usual >= 1 else ""
    return f"at the pace of the last steps, in {counted(legs, 'more leg')}{each}"
