"""How a leg's end and its job's belong together: why a leg ended that left no word itself, by what its scheduler says. Pure."""

from __future__ import annotations

from onward.model.job import DONE_UNTOLD, JobState, JobStatus
from onward.model.run import Leg, LegEnd
from onward.model.stop_reason import StopReason

# The state of its job that a leg's end amounts to.
ENDED_AS = {
    LegEnd.DONE: JobState.FINISHED,
    LegEnd.AGAIN: JobState.FINISHED,
    LegEnd.TIME_LIMIT: JobState.TIMED_OUT,
    LegEnd.PREEMPTED: JobState.PREEMPTED,
    LegEnd.OUT_OF_MEMORY: JobState.OUT_OF_MEMORY,
    LegEnd.CRASHED: JobState.FAILED,
    LegEnd.STALLED: JobState.FAILED,
    LegEnd.NODE_LOST: JobState.NODE_FAILED,
    LegEnd.CANCELLED: JobState.CANCELLED,
    LegEnd.LOST: JobState.UNKNOWN,
}


def classify_end(status: JobStatus | None, job: str, *, noticed: bool | None = None) -> tuple[LegEnd, str]:
    """The end of a leg that left no word itself, from the scheduler's. `None`: the scheduler does not know the job.

    `noticed`: whether a notice came that the job was deleted, where the scheduler sends one and cannot tell a deletion
    from a kill afterwards; None where it can, or sends none.
    """
    if noticed and status is None:
        return LegEnd.CANCELLED, f"job {job} was deleted"
    if status is None:
        return LegEnd.LOST, f"the scheduler no longer knows job {job}, and the leg wrote no end record"
    where = f" on {', '.join(status.nodes)}" if status.nodes else ""
    words = f" ({status.reason})" if status.reason else ""
    if noticed and status.state in (JobState.CANCELLED, JobState.FAILED, JobState.FINISHED):
        return LegEnd.CANCELLED, f"job {job} was deleted"
    if noticed is False and status.state is JobState.CANCELLED:
        return LegEnd.LOST, f"job {job} was killed{where} without the notice that precedes a deletion; sender unknown"
    match status.state:
        case JobState.TIMED_OUT:
            return LegEnd.TIME_LIMIT, f"job {job} was killed at its time limit before it could stop by itself"
        case JobState.PREEMPTED:
            return LegEnd.PREEMPTED, f"job {job} was preempted{where}"
        case JobState.OUT_OF_MEMORY:
            return LegEnd.OUT_OF_MEMORY, f"job {job} was killed for running out of memory{where}"
        case JobState.NODE_FAILED:
            return LegEnd.NODE_LOST, f"the node of job {job} failed{where}"
        case JobState.CANCELLED:
            return LegEnd.CANCELLED, f"job {job} was cancelled" + (f" by {status.cancelled_by}" if status.cancelled_by else words)
        case JobState.FAILED if status.exit_code == DONE_UNTOLD:
            return LegEnd.DONE, f"the training finished, as the exit code of job {job} says; the run's folder could not be written then"
        case JobState.FAILED if status.signal:
            return LegEnd.LOST, f"job {job} was killed by signal {status.signal}{where}; sender unknown"
        case JobState.FAILED:
            return LegEnd.LOST, f"job {job} failed with exit code {status.exit_code}{where}{words}, and the leg wrote no end record"
        case _:
            return LegEnd.LOST, f"job {job} is {status.state}{words}, but the leg wrote no end record"


def deletion_noticed(leg: Leg, *, notice_expected: bool) -> bool | None:
    """Whether the leg got the notice that its job was deleted; None where its absence proves nothing.

    `notice_expected`: the scheduler sends one before every deletion, and afterwards cannot tell a deletion from a kill.
    """
    if leg.asked and leg.asked.reason is StopReason.DELETED:
        return True
    return False if notice_expected else None


def job_state(leg: Leg) -> JobState:
    """As far as the leg tells: one that ended itself in time for its limit did not time out."""
    if leg.end:
        return JobState.FINISHED if leg.own is not None and leg.end is LegEnd.TIME_LIMIT else ENDED_AS[leg.end]
    return JobState.RUNNING if leg.claimed else JobState.QUEUED
