"""Tend: look after all runs at once, and repair what got lost. One batched query a cluster, whatever the number of runs.

A run carries itself; this is for what no leg can mend: a controller that forgot a queued job, a submit nobody heard
the answer of, a leg that died with no successor queued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onward.errors import OnwardError, SchedulerUnavailable
from onward.model import event as ev
from onward.model.job import JobId, JobState, JobStatus
from onward.model.lifecycle import Close, Continue, Rest, classify, decide
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.operations.wiring import Desk
from onward.rundir.closing import close_run
from onward.rundir.journal import Journal, desk_journal, read_run
from onward.rundir.layout import RunDir, runs_under
from onward.supervisor.handover import Handover, QueuedLegCancelled

GRACE = 30.0  # seconds: whoever acted this lately may still be at it
_MOST_FALSE_STARTS = 3  # jobs of one leg that ended before they could begin

Answers = Mapping[JobId, JobStatus]


@dataclass(kw_only=True)
class Tended:
    """What one pass did."""

    looked_at: int = 0
    acted: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def tend(desk: Desk, *, grace: float = GRACE) -> Tended:
    done = Tended()
    open_runs: dict[str, list[tuple[RunDir, Run]]] = {}
    for dir in runs_under(desk.root):
        if dir.done.exists():
            continue
        done.looked_at += 1
        try:
            run = read_run(dir)
        except (OSError, ValueError, KeyError, TypeError) as error:
            done.problems.append(f"{dir.path.name}: cannot be read: {error}")
            continue
        open_runs.setdefault(run.spec.cluster.name, []).append((dir, run))
    for runs in open_runs.values():
        scheduler = desk.scheduler(runs[0][1].spec.cluster)
        try:
            answers = scheduler.status(list(_jobs(run for _, run in runs)))
        except SchedulerUnavailable as error:
            done.problems.append(f"{runs[0][1].spec.cluster.name}: {error}; nothing is known, nothing was done")
            continue
        for dir, run in runs:
            try:
                words = _Case(desk=desk, dir=dir, run=run, answers=answers, grace=grace).mend()
            except OnwardError as error:
                done.problems.append(f"{run.spec.name} ({run.spec.id}): {error}")
                continue
            if words:
                done.acted.append(f"{run.spec.name} ({run.spec.id}): {words}")
    return done


def _jobs(runs: Iterable[Run]) -> Iterable[JobId]:
    for run in runs:
        for leg in run.legs.values():
            if leg.job and leg.end is None:
                yield JobId(leg.job)


@dataclass(kw_only=True)
class _Case:
    """One open run, and what the scheduler says of its jobs."""

    desk: Desk
    dir: RunDir
    run: Run
    answers: Answers
    grace: float
    _journal: Journal | None = None

    @property
    def journal(self) -> Journal:
        """Made at the first write: a pass that does nothing leaves no file."""
        if self._journal is None:
            self._journal = desk_journal(self.dir)
        return self._journal

    def mend(self) -> str | None:
        run = self.run
        pending = [leg for leg in run.legs.values() if leg.end is None and (leg.claimed or leg.submission)]
        if any(self._alive(leg) for leg in pending) or self._too_fresh(pending):
            return None
        said = [self._settle(leg) for leg in pending if leg.claimed]
        said += [self._false_start(leg) for leg in pending if not leg.claimed]
        self.run = run = read_run(self.dir) if any(said) else run
        action = decide(run)
        try:
            match action:
                case Rest():
                    pass
                case Close():
                    self._close(action)
                    said.append(f"closed as {action.state}: {action.cause}")
                case Continue():
                    before = run.legs.get(action.leg)
                    if before and len(before.submissions) >= _MOST_FALSE_STARTS and not before.claimed:
                        return self._give_up(before)
                    job = self._handover().ensure(run, action, after=None)
                    said.append(f"queued leg {action.leg} as job {job}")
        except QueuedLegCancelled as error:
            self.journal.write(
                ev.Found(leg=action.leg if isinstance(action, Continue) else 1, at=self._now(), end=LegEnd.CANCELLED, reason=error.message)
            )
            self.run = read_run(self.dir)
            closing = decide(self.run)
            if isinstance(closing, Close):
                self._close(closing)
            said.append(error.message)
        return "; ".join(words for words in said if words) or None

    def _alive(self, leg: Leg) -> bool:
        status = self._status(leg)
        return status is not None and status.state.live

    def _too_fresh(self, pending: list[Leg]) -> bool:
        """Somebody wrote about this run a moment ago and may still be at it."""
        moments = [self.run.spec.created]
        moments += [leg.ended for leg in self.run.legs.values() if leg.ended]
        moments += [s.at for leg in pending for s in leg.submissions.values()]
        return self._now() - max(moments) < self.grace

    def _status(self, leg: Leg) -> JobStatus | None:
        status = self.answers.get(JobId(leg.job)) if leg.job else None
        if status and leg.submissions and status.name not in leg.submissions:
            return None  # the id was given to somebody else's job
        return status

    def _settle(self, leg: Leg) -> str:
        end, reason = classify(self._status(leg), leg.job or "?")
        self.journal.write(ev.Found(leg=leg.number, at=self._now(), end=end, reason=reason))
        return f"leg {leg.number} ended {end}: {reason}"

    def _false_start(self, leg: Leg) -> str:
        """A queued job that is gone without having begun: cancelled by somebody, or lost."""
        status = self._status(leg)
        if status and status.state is JobState.CANCELLED:
            reason = f"job {leg.job} was cancelled before it began {status.reason}".rstrip()
            self.journal.write(ev.Found(leg=leg.number, at=self._now(), end=LegEnd.CANCELLED, reason=reason))
            return reason
        return ""

    def _give_up(self, leg: Leg) -> str:
        status = self._status(leg)
        words = f"{status.state}, exit code {status.exit_code} {status.reason}" if status else "no longer known to the scheduler"
        self._close(
            Close(
                state=RunState.FAILED,
                cause=f"{len(leg.submissions)} jobs for leg {leg.number} ended before they could begin",
                evidence=f"the last one, job {leg.job}, is {words}; see {self.dir.supervisor_log}",
                next=f"onward doctor, then onward resume {self.run.spec.id}",
            )
        )
        return f"gave up on leg {leg.number}"

    def _close(self, action: Close) -> None:
        last = self.run.last_leg
        close_run(self.dir, self.journal, action, leg=max(last.number if last else 1, self.run.first_leg), at=self._now())
        self._handover().withdraw(self.run, from_leg=1, reason="the run is over")

    def _handover(self) -> Handover:
        scheduler = self.desk.scheduler(self.run.spec.cluster)
        return Handover(dir=self.dir, scheduler=scheduler, journal=self.journal, clock=self.desk.clock, patience=5.0)

    def _now(self) -> float:
        return self.desk.clock.now()
