"""Scheduler: the one seam between Onward and whatever runs jobs. Small enough to fake on one screen.

Answers are three-valued: a job is found, or it is absent from the answer (the scheduler surely does not know it), or
the call raises `SchedulerUnavailable` and nothing is known. Absence is not an end: the caller decides what it means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from onward.errors import NotOffered, SchedulerError
from onward.model.cluster import ClusterSnapshot
from onward.model.job import Allocation, JobId, JobStatus
from onward.model.policy.unrecorded_jobs import note_unrecorded
from onward.model.run import Run
from onward.model.spec import Resources


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What only some schedulers do. One that has an attribute `capabilities` says so there; the others need not know of it."""

    finishing_seconds: float = 0.0  # a job that has left the queue may be unknown for this long before its end is reported
    deletes_unseen: bool = False  # a job that was deleted while it waited is not known any more, as if it had never been
    delete_notice: int | None = None  # the signal that comes some seconds before a deleted job is killed
    only_notice_tells_deletion: bool = False  # afterwards a killed job cannot be distinguished from a deleted one
    srun_steps: bool = False  # a job starts processes on its nodes with Slurm's srun
    again_exit: int | None = None  # exit code by which a job there asks to be run again
    final_exit: int | None = None  # exit code by which it says that it is not to be


Habits = Capabilities  # the name until 0.1: plugins written then have `habits = Habits(...)`


@dataclass(frozen=True, kw_only=True)
class ExpectedStart:
    """When a job would start if it were submitted now, or why it would be refused."""

    at: float | None = None
    nodes: str = ""
    queue: str = ""
    refused: str = ""


def capabilities_of(scheduler: object) -> Capabilities:
    found = getattr(scheduler, "capabilities", None) or getattr(scheduler, "habits", None)
    return found if isinstance(found, Capabilities) else Capabilities()


def advice_of(scheduler: object, resources: Resources) -> Sequence[str]:
    """What the owner of such a job should know of this site before it matters, where the scheduler has something to say."""
    advice = getattr(scheduler, "advice", None)
    return list(advice(resources)) if callable(advice) else []


def why_of(scheduler: object, jobs: Collection[JobId]) -> Mapping[JobId, str]:
    """Why queued jobs wait, where the scheduler can say more of it than `status` does. Not for many jobs at once."""
    why = getattr(scheduler, "why", None)
    return dict(why(jobs)) if callable(why) else {}


def priority_of(scheduler: object, job: JobId) -> str:
    """What decides when this waiting job's turn comes, in words, where the scheduler can tell. A question for a person's own asking."""
    ask = getattr(scheduler, "priority", None)
    try:
        return str(ask(job)) if callable(ask) else ""
    except SchedulerError as error:
        return f"unknown now: {error.message}"


def expected_start_of(scheduler: object, script: str) -> ExpectedStart | None:
    """Of such a job script, where the scheduler can tell without queueing it. A question for a person's own asking: it costs a pass."""
    expect = getattr(scheduler, "expected_start", None)
    found = expect(script) if callable(expect) else None
    return found if isinstance(found, ExpectedStart) else None


def snapshot_of(scheduler: object) -> ClusterSnapshot:
    """Nodes, queues and jobs of the whole cluster, where the scheduler's adapter can tell them. NotOffered where it cannot."""
    take = getattr(scheduler, "snapshot", None)
    taken = take() if callable(take) else None
    if not isinstance(taken, ClusterSnapshot):
        raise NotOffered(
            f"the scheduler {type(scheduler).__name__} does not report its nodes, queues and jobs",
            hint="its adapter would need a method `snapshot`: onward help add-a-scheduler",
        )
    return taken


def live_jobs_of(scheduler: object) -> Mapping[JobId, JobStatus]:
    """All jobs of this user's that wait or run, in one call. None of them where the scheduler's adapter cannot tell: then only jobs
    that journals name are known."""
    ask = getattr(scheduler, "live", None)
    try:
        return dict(ask()) if callable(ask) else {}
    except NotOffered:
        return {}


def ask_about(scheduler: Scheduler, runs: Collection[Run]) -> Mapping[JobId, JobStatus]:
    """What is known of the jobs of these runs' open legs, whatever their number: in one call, and in one more if some have ended.

    Jobs that no journal names are put into their runs.
    """
    live = live_jobs_of(scheduler) if runs else {}
    note_unrecorded(runs, live)
    wanted = {JobId(leg.job) for run in runs for leg in run.legs.values() if leg.job and leg.end is None}
    known = {job: live[job] for job in wanted & live.keys()}
    missing = wanted - known.keys()
    return {**known, **scheduler.status(missing)} if missing else known


def end_time_of(scheduler: object, job: JobId) -> float | None:
    """When a running job is to end, read again: an admin may have moved its limit (unix seconds).

    None: unchanged as far as anybody knows. That covers a scheduler that cannot move limits, one that did not answer, and no limit.
    """
    ask = getattr(scheduler, "end_time", None)
    try:
        found = ask(job) if callable(ask) else None
    except SchedulerError:
        return None
    return float(found) if found is not None else None


def grace_of(scheduler: object) -> float | None:
    """From inside a job: seconds between the notice of a preemption and the kill at this site. None: not known."""
    ask = getattr(scheduler, "grace_seconds", None)
    try:
        found = ask() if callable(ask) else None
    except SchedulerError:
        return None
    return float(found) if found is not None else None


class Requeues(Protocol):
    """A scheduler whose running jobs can go back into the queue: how a run goes on where no further job may be submitted."""

    def requeue(self, job: JobId) -> int | None:
        """Put this very job back into the queue: the last act of its process. An exit code to leave with, where that is what does it.

        Raises SchedulerError where it is not allowed here.
        """
        ...

    def requeued(self, job: JobId) -> None:
        """In a job that came back: the scheduler must not restart it by itself from now on."""
        ...


def requeues(scheduler: object) -> Requeues | None:
    """The scheduler as one that can requeue a job, where it can."""
    able = callable(getattr(scheduler, "requeue", None)) and callable(getattr(scheduler, "requeued", None))
    return cast(Requeues, scheduler) if able else None


class StartsOnNodes(Protocol):
    """A scheduler whose jobs can start processes on all of their nodes. Without this a run of several nodes has no agents there."""

    def node_commands(self, command: Sequence[str], hosts: Sequence[str]) -> Sequence[Sequence[str]]:
        """From inside a job: the programs, with their arguments, that start `command` once on each of these hosts of the job.

        Each passes its standard input on to what it starts. One that is for a single host ends with `--host HOST`.
        """
        ...


def starts_on_nodes(scheduler: object) -> StartsOnNodes | None:
    """The scheduler as one that can start processes on a job's other nodes, where it can."""
    return cast(StartsOnNodes, scheduler) if callable(getattr(scheduler, "node_commands", None)) else None


class Scheduler(Protocol):
    @property
    def settle_seconds(self) -> float:
        """Seconds after a submit without a clear answer until a lookup by name can be believed."""
        ...

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        """The comment lines at the head of a job script that ask for these resources."""
        ...

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        """Queue a script, held until `after` has ended in whatever way. Never retried here: that is `supervisor.handover`'s.

        Raises SubmitRefused when the scheduler said no, SubmitLimitReached when it takes no more jobs of this user for now, and
        SubmitUnclear when the job may have been accepted.
        """
        ...

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        """The exact program and arguments that `submit` runs: what `--dry-run` prints."""
        ...

    def find(self, name: str) -> Sequence[JobId]:
        """All jobs with exactly this name that the scheduler knows, ended ones too, oldest first."""
        ...

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        """What is known of these jobs, in as few calls as can be, whatever their number."""
        ...

    def cancel(self, jobs: Collection[JobId]) -> None:
        """End these jobs. Jobs that have ended or are unknown are ignored."""
        ...

    def allocation(self) -> Allocation:
        """From inside a job: what it got."""
        ...

    def check(self) -> str:
        """One line about this scheduler (version, address), or SchedulerUnavailable."""
        ...
