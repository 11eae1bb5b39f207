"""At which call of should_stop() all ranks leave: decided from their promises. Pure; the ranks' side is in sdk/stop.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_PATIENCE = 15.0  # seconds for the promises that are missing, from the first one on
_GO_ON_SECONDS = 1.0  # who waits for others that have not promised goes on about so far
_SAME_STEP_CALLS, _SAME_STEP_SECONDS = 3, 1.0  # ranks that step together promise no further apart
_SURELY_CALLED = (3, 5.0)  # calls and seconds of one rank after which another that has made none is taken not to call at all


@dataclass(frozen=True, kw_only=True)
class RankReport:
    """What one rank has told of itself."""

    rank: int
    world: int
    count: int = 1  # calls it had made then
    limit: int | None = None  # the call it will not pass before it knows the number; None: it has not promised yet
    interval: float = 0.0  # seconds between its calls
    term: bool = False  # it was sent SIGTERM
    waiting: bool = False  # it is at its limit, and does nothing until it hears more

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> RankReport:
        limit = note.get("limit")
        return cls(
            rank=int(note["rank"]),
            world=int(note["world"]),
            count=int(note["count"]),
            limit=None if limit is None else int(limit),
            interval=float(note.get("interval", 0)),
            term=bool(note.get("term")),
            waiting=bool(note.get("waiting")),
        )


@dataclass(frozen=True, kw_only=True)
class StopAgreement:
    number: int  # every rank leaves at this call
    without: tuple[int, ...] = ()  # ranks that did not promise in time, and may miss it


def agreed_call(reports: Collection[RankReport], *, waited: float, allowed: int = 0, gone: Collection[int] = ()) -> StopAgreement | None:
    """A call that no rank has passed, and none passes before it knows of it. None: not all have promised yet.

    `waited` is the time since the first promise, `allowed` a call to which those that promised may have gone on since,
    `gone` the ranks that have ended. Ranks that never call should_stop(),
    as where rank 0 asks and tells the others, are not waited for once that is clear.
    """
    promised = [report for report in reports if report.limit is not None]
    if not promised:
        return None
    number = max(allowed, *(report.limit or 0 for report in promised))
    known = {report.rank for report in reports} | set(gone)
    settled = {report.rank for report in promised} | set(gone)
    everyone = set(range(max(report.world for report in reports)))
    silent = everyone - known  # have not called even once
    if known <= settled and (not silent or any(_well_under_way(report) for report in promised)):
        return StopAgreement(number=number)
    if waited >= patience(reports):
        return StopAgreement(number=number, without=tuple(sorted(everyone - settled)))
    return None


def allowed_call(reports: Collection[RankReport], *, allowed: int) -> int | None:
    """A further call to which those that promised may go on, where one of them waits at its limit for others that have not.

    Those may be waiting for it in turn, in a collective operation, and will call should_stop() only once it goes on.
    """
    waiting = [report for report in reports if report.waiting and report.count >= allowed]
    if not waiting:
        return None
    reach = max(min(round(_GO_ON_SECONDS / max(report.interval, 1e-9)), report.count) for report in waiting)
    return max(allowed, *(report.limit or 0 for report in reports)) + max(reach, 1)


def uneven_calls_warning(promised: Collection[RankReport]) -> str:
    """Words for ranks that call should_stop() not equally often: they leave at the same call, and so at different steps.

    `promised` are their first promises, made within a moment of each other: who is on the same step has made as many calls.
    """
    limits = {report.rank: report.limit for report in promised if report.limit is not None}
    if len(limits) < 2:
        return ""
    fewest, most = (pick(limits, key=lambda rank: limits[rank]) for pick in (min, max))
    interval = min(report.interval for report in promised)
    if limits[most] - limits[fewest] <= max(_SAME_STEP_CALLS, _SAME_STEP_SECONDS / max(interval, 1e-9)):
        return ""
    return (
        f"rank {most} has called should_stop() about {limits[most] - limits[fewest]} times more often than rank {fewest}, so that they may"
        " have stopped at different steps; call it on every rank once per step, or only on rank 0"
    )


def _well_under_way(report: RankReport) -> bool:
    calls, seconds = _SURELY_CALLED
    return report.count > calls and (report.count - 1) * report.interval >= seconds


def patience(reports: Collection[RankReport]) -> float:
    """A rank that has just passed a call makes its next one only after a whole step."""
    return max([_PATIENCE, *(3 * report.interval for report in reports)])
