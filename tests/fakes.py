"""Stand-ins that behave: what is tested against them is tested against the same contract as the real thing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onward.clock import Clock, ManualClock
from onward.errors import InvalidInput, SchedulerUnavailable, SubmitLimitReached, SubmitRefused, SubmitUnclear
from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Node, NodeState, Queue, by_use, in_order
from onward.model.job import NAME_PATTERN, Allocation, JobId, JobState, JobStatus
from onward.model.spec import Resources


@dataclass
class FakeJob:
    script: Path
    after: JobId | None
    status: JobStatus


class FakeScheduler:
    """A scheduler in memory. Nothing runs: the test moves jobs with `start`, `end` and `forget`, and time with its clock.

    `down`, `refuse`, `limit`, `lose` and `swallow` make it fail as schedulers do; `inside` is the job that `allocation` speaks of.
    """

    settle_seconds = 0.0

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.jobs: dict[JobId, FakeJob] = {}
        self.down = False  # no call is answered
        self.refuse = ""  # why the next submit is refused
        self.limit: int | None = None  # jobs that may be there at once
        self.lose = False  # the next submit is accepted, but its answer is lost
        self.swallow = False  # the next submit is not accepted, and its answer is lost
        self.inside: JobId | None = None
        self.deadline: float | None = None
        self.moved: dict[JobId, float] = {}  # ends of jobs whose limit an admin has moved
        self.grace: float | None = None  # seconds between the notice of a preemption and the kill
        self._last = 0

    # ── the test's hand ───────────────────────────────────────────────────────

    def start(self, job: JobId, *, nodes: tuple[str, ...] = ("node1",)) -> None:
        assert self._now(job).state is JobState.QUEUED, f"job {job} is {self._now(job).state}"
        self._change(job, state=JobState.RUNNING, reason="", started=self.clock.now(), nodes=nodes)

    def end(
        self,
        job: JobId,
        state: JobState = JobState.FINISHED,
        *,
        exit_code: int | None = 0,
        signal: int | None = None,
        reason: str = "",
        by: str = "",
    ) -> None:
        """`by`: another user than the job's owner cancelled it."""
        self._change(job, state=state, exit_code=exit_code, signal=signal, reason=reason, ended=self.clock.now())
        self.jobs[job].status = replace(self.jobs[job].status, cancelled_by=by)

    def requeue(self, job: JobId) -> int | None:
        """As a scheduler does that has lost a host from sight, and as a job asks for itself."""
        self._answer()
        self._change(job, state=JobState.QUEUED, reason="", started=None, nodes=())
        return None

    def forget(self, job: JobId) -> None:
        """As a scheduler does with ended jobs after a while, or with all of them after a bad restart."""
        del self.jobs[job]

    def named(self, name: str) -> JobStatus:
        """The newest job of this name."""
        return self._now([job for job, fake in self.jobs.items() if fake.status.name == name][-1])

    # ── the scheduler ─────────────────────────────────────────────────────────

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        limit = [f"#FAKE --time={resources.time}"] if resources.time is not None else []
        return [*limit, f"#FAKE --output={output}"]

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        self._answer()
        if not NAME_PATTERN.match(name):
            raise SubmitRefused(f"{name!r} is not a valid job name")
        if self.refuse:
            reason, self.refuse = self.refuse, ""
            raise SubmitRefused(f"the fake refused {name}: {reason}")
        if self.limit is not None and sum(self._now(job).state.live for job in self.jobs) >= self.limit:
            raise SubmitLimitReached(f"only {self.limit} jobs are allowed")
        if self.swallow:
            self.swallow = False
            raise SubmitUnclear(f"submitting {name}: no answer")
        self._last += 1
        job = JobId(str(self._last))
        status = JobStatus(id=job, name=name, state=JobState.QUEUED, submitted=self.clock.now())
        self.jobs[job] = FakeJob(script=script, after=after, status=status)
        if self.lose:
            self.lose = False
            raise SubmitUnclear(f"submitting {name}: no answer")
        return job

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        return ["fake-submit", f"--name={name}", *([f"--after={after}"] if after else []), str(script)]

    def find(self, name: str) -> Sequence[JobId]:
        self._answer()
        return [job for job, fake in self.jobs.items() if fake.status.name == name]

    def live(self) -> Mapping[JobId, JobStatus]:
        self._answer()
        return {job: status for job in self.jobs if (status := self._now(job)).state.live}

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        self._answer()
        return {job: self._now(job) for job in jobs if job in self.jobs}

    def cancel(self, jobs: Collection[JobId]) -> None:
        self._answer()
        for job in jobs:
            if job in self.jobs and self._now(job).state.live:
                self.end(job, JobState.CANCELLED, exit_code=None)

    def allocation(self) -> Allocation:
        if self.inside is None:
            raise InvalidInput("this is not inside a job")
        return Allocation(job=self.inside, hosts=self._now(self.inside).nodes or ("node1",), deadline=self.deadline)

    def requeued(self, job: JobId) -> None:
        self._answer()

    def end_time(self, job: JobId) -> float | None:
        self._answer()
        return self.moved.get(job)

    def grace_seconds(self) -> float | None:
        self._answer()
        return self.grace

    def check(self) -> str:
        self._answer()
        return f"fake scheduler: {len(self.jobs)} jobs"

    def snapshot(self) -> ClusterSnapshot:
        """Nodes of 16 CPUs: node1, and those on which the test started something. Each job takes one CPU."""
        self._answer()
        live = [status for status in map(self._now, self.jobs) if status.state.live]
        names = sorted({"node1", *(node for status in live for node in status.nodes)})
        used = {name: sum(name in status.nodes for status in live) for name in names}
        nodes = [by_use(Node(name=name, state=NodeState.FREE, cpus=16, cpus_used=used[name], mem=64 * 1024)) for name in names]
        return ClusterSnapshot(
            scheduler="fake",
            taken_at=self.clock.now(),
            user="ada",
            nodes=tuple(nodes),
            queues=(Queue(name="all", nodes=tuple(names), default=True, time_limit=86_400),),
            jobs=in_order([self._seen(status) for status in live]),
        )

    def _seen(self, status: JobStatus) -> ClusterJob:
        return ClusterJob(
            id=status.id,
            name=status.name,
            user="ada",
            mine=True,
            state=status.state,
            queue="all",
            asked=Asked(),
            nodes=status.nodes,
            submitted=status.submitted,
            started=status.started,
            reason=status.reason,
            in_line=status.state is JobState.QUEUED,
        )

    def _answer(self) -> None:
        if self.down:
            raise SchedulerUnavailable("the fake scheduler is down")

    def _now(self, job: JobId) -> JobStatus:
        fake = self.jobs[job]
        before = self.jobs.get(fake.after) if fake.after else None
        if fake.status.state is JobState.QUEUED and before is not None and before.status.state.live:
            return replace(fake.status, state=JobState.HELD, reason=f"waits for job {fake.after}")
        return fake.status

    def _change(
        self,
        job: JobId,
        *,
        state: JobState,
        reason: str,
        started: float | None = None,
        ended: float | None = None,
        nodes: tuple[str, ...] | None = None,
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> None:
        old = self.jobs[job].status
        self.jobs[job].status = replace(
            old,
            state=state,
            reason=reason,
            exit_code=exit_code,
            signal=signal,
            nodes=old.nodes if nodes is None else nodes,
            started=old.started if started is None else started,
            ended=ended,
        )
