"""Effort: what a run's jobs had, how much of it was useful, what would be lost now, and how long it waited. Pure.

What a leg computed after the checkpoint that the run later went on from was lost. What the leg at work has computed since its newest
checkpoint is neither kept nor lost yet: it is at risk, and counts on neither side of the goodput.
"""

from __future__ import annotations

from dataclasses import dataclass

from onward.model.events import Published
from onward.model.policy.leg_history import saves_by_itself, wrote_own_files
from onward.model.run import Leg, LegEnd, Run


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Seconds of jobs; a job of four nodes counts once."""

    allocated: float
    kept: float
    lost: float
    overhead: float  # before the training started and after it had gone: restoring, staging, stopping
    at_risk: float
    waited: float  # in queues, while nothing of the run was at work
    unknown: float  # trained by legs of which only the training itself knows what stays

    @property
    def goodput(self) -> float | None:
        """Of the time whose fate is known, the share that was useful. None while nobody knows of some of it."""
        if self.unknown > 0:
            return None
        settled = self.allocated - self.at_risk
        return min(1.0, self.kept / settled) if settled > 0 else None


@dataclass(frozen=True, kw_only=True)
class WorkAtRisk:
    """What would be lost if the leg at work died now."""

    seconds: float
    steps: int | None  # None where no step was logged since
    since_step: int | None  # the checkpoint's; None: from the beginning
    since: float


@dataclass(frozen=True, kw_only=True)
class QueueWait:
    """A stretch in a queue; `until` None: it goes on."""

    leg: int
    since: float
    until: float | None


def effort(run: Run, *, now: float) -> Effort:
    legs = _took_place(run)
    allocated = kept = lost = overhead = at_risk = unknown = 0.0
    for leg in legs:
        assert leg.claimed is not None
        end = leg.ended if leg.end and leg.ended else now
        had = max(0.0, end - leg.claimed.at)
        began = min(leg.started if leg.started is not None else end, end)
        trained = max(0.0, end - began)
        stays = _kept(run, leg, legs, began=began, end=end)
        good = min(trained, stays or 0.0)
        allocated += had
        overhead += had - trained
        kept += good
        if stays is None:
            unknown += trained
        elif leg.end is None and not run.closed:
            at_risk += trained - good
        else:
            lost += trained - good
    waited = sum((wait.until or now) - wait.since for wait in queue_waits(run, now=now))
    return Effort(allocated=allocated, kept=kept, lost=lost, overhead=overhead, at_risk=at_risk, waited=waited, unknown=unknown)


def work_at_risk(run: Run, *, now: float, last_step: int | None) -> WorkAtRisk | None:
    """None where no leg is at work."""
    last = run.last_leg
    if last is None or last.end or run.closed or last.claimed is None:
        return None
    newest = max(last.published, key=lambda p: p.step, default=None)
    by_itself = not any(leg.published for leg in run.legs.values()) and wrote_own_files(run)
    own = max((saved.written for saved in last.self_saved), default=None) if by_itself else None
    step = newest.step if newest else last.restored.step if last.restored else None
    since = _taken(newest) if newest else own if own is not None else last.started if last.started is not None else last.claimed.at
    since = min(since, now)
    steps = None if last_step is None else last_step - step if step is not None else last_step + 1
    steps = steps if steps is not None and steps > 0 and not by_itself else None  # which step its own file is of, only it knows
    return WorkAtRisk(seconds=now - since, steps=steps, since_step=step, since=since)


def queue_waits(run: Run, *, now: float) -> list[QueueWait]:
    """A leg queued early, held on the one before, waits only from that one's end on."""
    found = []
    for number, leg in sorted(run.legs.items()):
        asked = _asked_at(leg)
        if asked is None or (not leg.claimed and (leg.end or run.closed)):
            continue
        before = [other for other in run.legs.values() if other.number < number and other.claimed]
        if not leg.claimed and any(other.end is None for other in before):
            continue  # held on a leg that is at work
        ended = max((other.ended for other in before if other.ended is not None), default=asked)
        since = max(asked, ended)
        until = leg.claimed.at if leg.claimed else None
        if since <= (until if until is not None else now):
            found.append(QueueWait(leg=number, since=since, until=until))
    return found


def newest_published(run: Run) -> Published | None:
    """The newest checkpoint that was published."""
    return max((p for leg in run.legs.values() for p in leg.published), key=lambda p: (p.leg, p.step), default=None)


def saved_step(leg: Leg) -> int | None:
    """How far a leg is by its checkpoints: the newest that it published, or began from."""
    if leg.last_published is not None:
        return leg.last_published
    return leg.restored.step if leg.restored else None


def _took_place(run: Run) -> list[Leg]:
    return [leg for _, leg in sorted(run.legs.items()) if leg.claimed]


def _asked_at(leg: Leg) -> float | None:
    """When the job that the leg got, or still waits for, was asked for."""
    if leg.claimed:
        own = [s.at for s in leg.submissions.values() if s.job == leg.claimed.job]
        return own[0] if own else min((s.at for s in leg.submissions.values()), default=None)
    standing = leg.submission
    return standing.at if standing else None


def _kept(run: Run, leg: Leg, legs: list[Leg], *, began: float, end: float) -> float | None:
    """Seconds from the leg's start until the state that the run went on from, or ended with, was reached. None: nobody knows."""
    if leg.end is LegEnd.DONE:
        return end - began
    if not any(other.published for other in run.legs.values()):
        own = max((saved.written for saved in leg.self_saved), default=None)
        if own is not None:
            return max(0.0, min(own, end) - began)
        if wrote_own_files(run):
            return 0.0  # it is seen when it saves, and in this leg it was not
        if leg.end in (LegEnd.TIME_LIMIT, LegEnd.PREEMPTED, LegEnd.AGAIN) and not leg.missed:
            return None  # it had its time; what it made of it, only it knows
        return None if leg.end is None and saves_by_itself(run) else 0.0
    later = [other for other in legs if other.number > leg.number and other.started is not None]
    cut = min((other.restored.step if other.restored else -1 for other in later), default=None)
    stays = [p for p in leg.published if cut is None or p.step <= cut]
    newest = max(stays, key=lambda p: p.step, default=None)
    return max(0.0, min(_taken(newest), end) - began) if newest else 0.0


def _taken(checkpoint: Published) -> float:
    """When the state that it holds was reached: before it was saved and staged."""
    return checkpoint.at - checkpoint.stage_seconds - checkpoint.save_seconds
