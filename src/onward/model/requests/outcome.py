"""Outcome: how a request ended, for every way a run can end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from onward.model.policy.leg_history import time_used_up
from onward.model.run import LegEnd, Run, RunState


class OutcomeState(StrEnum):
    DONE = "done"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"
    TIME_LIMIT = "time_limit"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    NODE_LOST = "node_lost"
    EXPIRED = "expired"  # the request's deadline passed
    UNREACHABLE = "unreachable"  # and until then the cluster could not be reached
    REFUSED = "refused"  # there was never a run


@dataclass(frozen=True, kw_only=True)
class OutcomeFile:
    """A file that the run made, under the name that the recipe gives it."""

    name: str
    path: str  # where it lies, whole
    size: int  # bytes
    sha256: str
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    state: OutcomeState
    reason: str
    next: str = ""  # what a person can do about it
    log_tail: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    results: tuple[OutcomeFile, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "state": str(self.state),
            "reason": self.reason,
            "next": self.next,
            "log_tail": self.log_tail,
            "metrics": dict(self.metrics),
            "results": [vars(result) for result in self.results],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(
            state=OutcomeState(data["state"]),
            reason=data["reason"],
            next=data["next"],
            log_tail=data["log_tail"],
            metrics=data["metrics"],
            results=tuple(OutcomeFile(**result) for result in data["results"]),
        )


_AGAIN = "send it again as a new request"
_MORE = ", if its recipe lets you choose that; otherwise ask whoever maintains the recipe"
_NEXT = {  # for who asked, from afar: what the run's keeper could do stands with the run
    OutcomeState.FAILED: f"once the cause is fixed, {_AGAIN}",
    OutcomeState.OUT_OF_MEMORY: f"{_AGAIN} with more memory{_MORE}",
    OutcomeState.TIME_LIMIT: f"{_AGAIN} with more time{_MORE}",
    OutcomeState.CANCELLED: _AGAIN,
    OutcomeState.PREEMPTED: _AGAIN,
    OutcomeState.NODE_LOST: _AGAIN,
}


def refusal(reason: str, *, next: str = "") -> Outcome:
    return Outcome(state=OutcomeState.REFUSED, reason=reason, next=next)


def outcome_of(run: Run, *, log_tail: str = "", metrics: Mapping[str, float] | None = None) -> Outcome:
    """Of a run that is over. The results are to be added to one that is done."""
    assert run.closed is not None, f"{run.spec.id} is not over"
    state = _state(run)
    said = run.closed.evidence if state is not OutcomeState.DONE else ""
    tail = log_tail if not said or said.strip() in log_tail else f"{said}\n{log_tail}".rstrip()
    return Outcome(state=state, reason=run.closed.cause, next=_NEXT.get(state, ""), log_tail=tail, metrics=metrics or {})


def with_reason(outcome: Outcome, state: OutcomeState, reason: str, *, next: str = "") -> Outcome:
    """The same end, seen from the request: its own deadline passed, somebody asked for it, a result is missing."""
    return replace(outcome, state=state, reason=reason, next=next, results=())


def _state(run: Run) -> OutcomeState:
    match run.state:
        case RunState.FINISHED:
            return OutcomeState.DONE
        case RunState.CANCELLED:
            return OutcomeState.CANCELLED
        case _:
            return _failure(run)


def _failure(run: Run) -> OutcomeState:
    """By what ended its last leg; a run that had no leg at all just failed."""
    last = run.last_leg
    end = last.end if last else None
    match end:
        case LegEnd.OUT_OF_MEMORY:
            return OutcomeState.OUT_OF_MEMORY
        case LegEnd.TIME_LIMIT:
            return OutcomeState.TIME_LIMIT
        case LegEnd.PREEMPTED:
            return OutcomeState.PREEMPTED
        case LegEnd.NODE_LOST:
            return OutcomeState.NODE_LOST
        case LegEnd.AGAIN if time_used_up(run):
            return OutcomeState.TIME_LIMIT
        case None | LegEnd.DONE | LegEnd.AGAIN | LegEnd.CRASHED | LegEnd.STALLED | LegEnd.CANCELLED | LegEnd.LOST:
            return OutcomeState.FAILED
