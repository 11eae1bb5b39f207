"""Before a leg begins: what became of the legs before it that could not say so themselves."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from onward.clock import Clock
from onward.errors import SchedulerUnavailable
from onward.model.events import EndFound
from onward.model.job import JobId, JobState, JobStatus
from onward.model.policy.job_end import classify_end, deletion_noticed
from onward.model.run import Leg, LegEnd, Run
from onward.schedulers.base import Scheduler, capabilities_of

log = logging.getLogger(__name__)

_PATIENCE = 600.0  # seconds without any answer, until the next leg begins without knowing how the one before ended
SETTLE_SECONDS = 6.0  # seconds a job may be "ending" before its last state is known
_PAUSE, _LONGEST_PAUSE = 1.0, 15.0  # seconds; growing while there is no answer: a controller in trouble is not pressed


class StillRunning(Exception):
    """The scheduler says that an earlier leg is at work: this job came too early."""

    def __init__(self, job: JobId, state: JobState) -> None:
        super().__init__(f"job {job} is still {state}")
        self.job = job


def legs_without_end(run: Run) -> list[Leg]:
    """Legs that began and have no end."""
    return [leg for _, leg in sorted(run.legs.items()) if leg.claimed and leg.end is None]


def legs_with_unknown_end(run: Run) -> list[Leg]:
    """Legs of whose end the scheduler said nothing when it was asked."""
    return [leg for _, leg in sorted(run.legs.items()) if leg.claimed and leg.end is LegEnd.LOST and not leg.counts and leg.own is None]


def ask_once_about_ends(legs: list[Leg], scheduler: Scheduler, clock: Clock) -> list[EndFound]:
    """What the scheduler knows by now of ends that it could not tell when it was asked. One question, no waiting."""
    try:
        answer = scheduler.status([JobId(leg.claimed.job) for leg in legs if leg.claimed]) if legs else {}
    except SchedulerUnavailable:
        return []
    known = [(leg, status) for leg in legs if (status := _of_leg(leg, answer)) and not status.state.live]
    return [found for found in (_found(leg, status, clock) for leg, status in known) if found.end != LegEnd.LOST]


def ask_for_ends(
    legs: list[Leg],
    scheduler: Scheduler,
    clock: Clock,
    *,
    patience: float = _PATIENCE,
    settle_for: float = SETTLE_SECONDS,
) -> list[EndFound]:
    """Ask the scheduler for the end of each leg. Unknown is not finished: it is asked again, for a while.

    So is a job that has left the queue and of which it is not told yet how. `settle_for`: seconds for a job that still runs to end.
    A scheduler that stays silent leaves the end unknown, which never counts as a failure of the run.
    """
    jobs = [JobId(leg.claimed.job) for leg in legs if leg.claimed]
    capabilities = capabilities_of(scheduler)
    give_up = clock.now() + patience
    heard: float | None = None  # the first answer
    pause = _PAUSE
    while jobs:
        try:
            answer = scheduler.status(jobs)
        except SchedulerUnavailable as error:
            if clock.now() >= give_up:
                log.warning("the scheduler has not answered for %.0f s: %s", patience, error)
                return [_not_heard(leg, clock) for leg in legs]
            clock.sleep(min(pause, max(0.0, give_up - clock.now())))
            pause = min(2 * pause, _LONGEST_PAUSE)
            continue
        heard = heard if heard is not None else clock.now()
        known = {leg.number: _of_leg(leg, answer) for leg in legs}
        finishing = clock.now() < heard + capabilities.finishing_seconds
        if finishing and None in known.values():
            clock.sleep(_PAUSE)
            continue
        running = [status for status in known.values() if status and status.state in (JobState.RUNNING, JobState.UNKNOWN)]
        if not running:
            only_notice = capabilities.only_notice_tells_deletion
            return [_found(leg, known[leg.number], clock, noticed=deletion_noticed(leg, notice_expected=only_notice)) for leg in legs]
        if clock.now() >= heard + settle_for:
            raise StillRunning(running[0].id, running[0].state)
        clock.sleep(_PAUSE)
    return []


def _of_leg(leg: Leg, answer: Mapping[JobId, JobStatus]) -> JobStatus | None:
    """What is said of the leg's own job. A job of another name has only been given its id, after the scheduler forgot ours."""
    status = answer.get(JobId(leg.claimed.job)) if leg.claimed else None
    return status if status and (not leg.submissions or status.name in leg.submissions) else None


def _found(leg: Leg, status: JobStatus | None, clock: Clock, *, noticed: bool | None = None) -> EndFound:
    assert leg.claimed is not None
    end, reason = classify_end(status, leg.claimed.job, noticed=noticed)
    by = status.cancelled_by if status else ""
    return EndFound(leg=leg.number, at=(status.ended if status and status.ended else clock.now()), end=end, reason=reason, by=by)


def _not_heard(leg: Leg, clock: Clock) -> EndFound:
    assert leg.claimed is not None
    reason = f"how job {leg.claimed.job} ended is unknown: the leg wrote no end record, and the scheduler does not answer"
    return EndFound(leg=leg.number, at=clock.now(), end=LegEnd.LOST, reason=reason, counts=False)
