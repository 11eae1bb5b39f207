"""Run: one training, however many jobs it takes; folded from the events of its journals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from onward.model import events as ev
from onward.model.spec import CheckpointRule, Limits, Resources, RunSpec


class RunState(StrEnum):
    SUBMITTED = "submitted"
    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)


class LegEnd(StrEnum):
    DONE = "done"
    AGAIN = "again"  # the training saved and asked to be run again
    TIME_LIMIT = "time_limit"
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    NODE_LOST = "node_lost"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    LOST = "lost"  # gone, and neither it nor the scheduler says why


@dataclass(kw_only=True)
class Submission:
    """One asking for a leg's job. Several, where the first was refused, withdrawn or lost."""

    name: str
    at: float
    mem: int | None
    time: int | None
    exclude: str | None
    job: str | None = None
    withdrawn: bool = False
    gone: bool = False
    gone_by: str = ""  # another user than the owner cancelled its job
    refused: str = ""
    unrecorded: bool = False  # no journal names its job, which the scheduler lists
    limited: str = ""  # why there is no job yet: the scheduler's words about its limit on the number of jobs

    @property
    def stands(self) -> bool:
        return not (self.withdrawn or self.gone or self.refused)


@dataclass(kw_only=True)
class Leg:
    """One stretch of a run. Built by `fold`, read by everyone else."""

    number: int
    submissions: dict[str, Submission] = field(default_factory=dict)  # by job name
    claimed: ev.Claimed | None = None
    restored: ev.Restored | None = None
    started: float | None = None
    published: list[ev.Published] = field(default_factory=list)
    self_saved: list[ev.SelfSaved] = field(default_factory=list)
    missed: list[ev.Missed] = field(default_factory=list)
    asked: ev.AskedToStop | None = None
    end: LegEnd | None = None
    reason: str = ""
    evidence: str = ""
    ended: float | None = None
    cancelled_by: str = ""  # another user than the owner cancelled its job
    own: ev.Ended | None = None  # the leg's own last word, where it had one
    counts: bool = True  # its end, as a failure of the run: not where nobody could say what happened
    warnings: list[str] = field(default_factory=list)

    @property
    def job(self) -> str | None:
        if self.claimed:
            return self.claimed.job
        current = self.submission
        return current.job if current else None

    @property
    def standing(self) -> list[Submission]:
        """Those that were not withdrawn, refused or lost, the newest first. One without a place in the queue comes last."""
        return sorted((s for s in self.submissions.values() if s.stands), key=lambda s: (not s.limited, s.at, s.name), reverse=True)

    @property
    def submission(self) -> Submission | None:
        """The asking that stands."""
        return next(iter(self.standing), None)

    @property
    def last_published(self) -> int | None:
        return max((p.step for p in self.published), default=None)


@dataclass(kw_only=True)
class Run:
    spec: RunSpec
    legs: dict[int, Leg] = field(default_factory=dict)
    resumed: ev.Resumed | None = None
    closed: ev.Closed | None = None
    cancel: ev.CancelRequested | None = None
    stop: ev.StopRequested | None = None

    @property
    def first_leg(self) -> int:
        """The leg from which counters and requests bind: 1, or where the run was last resumed."""
        return self.resumed.leg if self.resumed else 1

    @property
    def last_leg(self) -> Leg | None:
        """The newest leg that took place, or whose end is known."""
        return max((leg for leg in self.legs.values() if leg.claimed or leg.end), key=lambda leg: leg.number, default=None)

    @property
    def changes(self) -> Mapping[str, Any]:
        return self.resumed.changes if self.resumed else {}

    @property
    def resources(self) -> Resources:
        """What the user asked for, with what `resume` changed."""
        return replace(self.spec.resources, **{k: v for k, v in self.changes.items() if k in Resources.__dataclass_fields__})

    @property
    def limits(self) -> Limits:
        return replace(self.spec.limits, **{k: v for k, v in self.changes.items() if k in Limits.__dataclass_fields__})

    @property
    def checkpoints(self) -> CheckpointRule:
        return replace(self.spec.checkpoints, **{k: v for k, v in self.changes.items() if k in CheckpointRule.__dataclass_fields__})

    @property
    def state(self) -> RunState:
        if self.closed:
            return RunState(self.closed.state)
        last = self.last_leg
        if last is None or last.number < self.first_leg:
            return RunState.SUBMITTED if last is None else RunState.WAITING
        return RunState.WAITING if last.end else RunState.RUNNING


def fold(spec: RunSpec, events: Iterable[ev.Event]) -> Run:
    """Make a Run of its events. They are put in order here, so that nothing depends on the order in which files are read."""
    run = Run(spec=spec)
    found: dict[int, ev.EndFound] = {}
    closings: list[ev.Closed] = []
    for event in sorted(events, key=lambda e: (e.leg, e.at, e.kind)):
        leg = run.legs.setdefault(event.leg, Leg(number=event.leg))
        match event:
            case ev.Submitting():
                entry = _submission(leg, event.name, event.at)
                entry.mem, entry.time, entry.exclude, entry.at = event.mem, event.time, event.exclude, event.at
            case ev.Submitted():
                entry = _submission(leg, event.name, event.at)
                entry.job, entry.limited = event.job, ""
            case ev.Withdrawn():
                _submission(leg, event.name, event.at).withdrawn = True
            case ev.Gone():
                entry = _submission(leg, event.name, event.at)
                entry.gone, entry.gone_by = True, event.by
                leg.warnings.append(event.reason)  # how a job of this leg ended before it could begin
            case ev.Refused():
                _submission(leg, event.name, event.at).refused = event.reason
            case ev.Limited():
                _submission(leg, event.name, event.at).limited = event.reason
            case ev.Claimed():
                leg.claimed = event
            case ev.Restored():
                leg.restored = event
            case ev.Started():
                leg.started = event.at
            case ev.Published():
                leg.published.append(event)
            case ev.SelfSaved():
                leg.self_saved.append(event)
            case ev.Missed():
                leg.missed.append(event)
            case ev.AskedToStop():
                leg.asked = event
            case ev.Ended():
                leg.own = event
            case ev.EndFound() if event.leg not in found or event.end != LegEnd.LOST:  # any answer beats having had none
                found[event.leg] = event
            case ev.LimitMoved():
                leg.claimed = replace(leg.claimed, deadline=event.deadline) if leg.claimed else None
                leg.warnings.append(event.text)
            case ev.Warned():
                leg.warnings.append(event.text)
            case ev.Closed():
                closings.append(event)
            case ev.CancelRequested():
                run.cancel = event
            case ev.StopRequested():
                run.stop = event
            case ev.Resumed():
                run.resumed = event
            case _:
                pass
    for leg in run.legs.values():
        _settle(leg, found.get(leg.number))
    first = run.first_leg
    run.closed = next((c for c in reversed(closings) if c.leg >= first), None)
    run.cancel = run.cancel if run.cancel and run.cancel.leg >= first else None
    run.stop = run.stop if run.stop and run.stop.leg >= first else None
    return run


def _settle(leg: Leg, found: ev.EndFound | None) -> None:
    """A leg's own last word beats what the scheduler said of it."""
    last = leg.own or found
    if last is not None:
        leg.end, leg.reason, leg.evidence, leg.ended, leg.counts = LegEnd(last.end), last.reason, last.evidence, last.at, last.counts
        leg.cancelled_by = last.by


def _submission(leg: Leg, name: str, at: float) -> Submission:
    return leg.submissions.setdefault(name, Submission(name=name, at=at, mem=None, time=None, exclude=None))
