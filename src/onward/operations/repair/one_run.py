"""Repair one run: what no leg of it can. A queued job that the controller lost, a leg that died with no successor, a submit unheard of."""

from __future__ import annotations

from dataclasses import dataclass

from onward.errors import SubmitLimitReached
from onward.model import events as ev
from onward.model.analysis.why import JobAnswers, state_words, status_of
from onward.model.job import JobId, JobState
from onward.model.policy.job_end import classify_end, deletion_noticed
from onward.model.policy.lifecycle import Close, Continue, NothingToDo, decide
from onward.model.policy.next_resources import excluded_nodes, wanted_mem
from onward.model.policy.unrecorded_jobs import unrecorded_jobs
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.operations.context import OperationsContext
from onward.operations.runs.home import ensure_home
from onward.operations.runs.record import read_folder
from onward.rundir.found_jobs import record_found
from onward.rundir.journal import Journal, desk_journal
from onward.rundir.layout import RunDir
from onward.rundir.progress import signs_of_life
from onward.rundir.queueing_alone import queueing_alone
from onward.rundir.run_end import close_run, mark_over
from onward.schedulers.base import Capabilities, ask_about, capabilities_of
from onward.supervisor.leg.handover import Handover, QueuedLegCancelled

GRACE = 30.0  # seconds: whoever acted this lately may still be at it
_MOST_FALSE_STARTS = 3  # jobs of one leg that ended before they could begin


def repair_run(context: OperationsContext, dir: RunDir) -> str | None:
    """The same for one run that somebody has asked about, without waiting whether others see to it."""
    ensure_home(context, dir)
    run = read_folder(dir)
    answers = ask_about(context.scheduler(run.spec.cluster), [run])
    return RunRepair(context=context, dir=dir, run=run, answers=answers, grace=0.0).repair()


@dataclass(kw_only=True)
class RunRepair:
    """One open run, and what the scheduler says of its jobs."""

    context: OperationsContext
    dir: RunDir
    run: Run
    answers: JobAnswers
    grace: float
    _journal: Journal | None = None

    @property
    def journal(self) -> Journal:
        """Made at the first write: a pass that does nothing leaves no file."""
        if self._journal is None:
            self._journal = desk_journal(self.dir)
        return self._journal

    def repair(self) -> str | None:
        if self.too_fresh():
            return None
        found = record_found(self.run, self.journal) if any(unrecorded_jobs(self.run)) else ""
        return "; ".join(words for words in (found, self._act()) if words) or None

    def _act(self) -> str | None:
        run = self.run
        pending = self._pending()
        if run.closed:  # whoever closed it died before the last stroke
            mark_over(self.dir, run.closed)
            self._handover().withdraw(run, from_leg=1, reason="the run is over")
            return f"marked as {run.state}"
        if any(self._alive(leg) for leg in pending):
            return self._top_up(pending)
        if any(self._finishing(leg) for leg in pending):
            return None
        said = [self._settle(leg) for leg in pending if leg.claimed]
        said += [self._false_start(leg) for leg in pending if not leg.claimed]
        self.run = run = read_folder(self.dir) if any(said) else run
        action = decide(run)
        match action:
            case NothingToDo():
                pass
            case Close():
                self._close(action)
                said.append(f"closed as {action.state}: {action.cause}")
            case Continue():
                said.append(self._go_on(action))
        return "; ".join(words for words in said if words) or None

    def _alive(self, leg: Leg) -> bool:
        status = status_of(leg, self.answers)
        return status is not None and status.state.live

    def _finishing(self, leg: Leg) -> bool:
        """Its job may have left the queue so lately that nobody can say yet what became of it: another pass will."""
        if status_of(leg, self.answers) is not None or not self._habits.finishing_seconds:
            return False
        asked = [s.at for s in leg.submissions.values()]
        return self._now() - max([*asked, *signs_of_life(self.dir, leg.number)], default=0.0) < self._habits.finishing_seconds

    @property
    def _habits(self) -> Capabilities:
        return capabilities_of(self.context.scheduler(self.run.spec.cluster))

    def _top_up(self, pending: list[Leg]) -> str | None:
        """Where jobs may not submit: see to it that as many legs wait as the profile says, each after the one before."""
        ahead = self.run.spec.cluster.legs_ahead
        waiting = [leg for leg in pending if not leg.claimed and self._alive(leg)]
        if not ahead or self.run.cancel or self.run.stop or len(waiting) >= ahead:
            return None
        last = max((leg for leg in pending if self._alive(leg)), key=lambda leg: leg.number)
        if last.number + 1 >= self.run.first_leg + self.run.limits.max_legs:
            return None
        wanted = Continue(leg=last.number + 1, mem=wanted_mem(self.run), exclude=excluded_nodes(self.run))
        try:
            if not self._queue(wanted, after=last.job, legs=ahead - len(waiting)):
                return None
        except SubmitLimitReached as error:
            return self._no_place(wanted.leg, error) or None
        return f"queued {ahead - len(waiting)} more legs ahead, from leg {wanted.leg} on"

    def _pending(self) -> list[Leg]:
        return [leg for leg in self.run.legs.values() if leg.end is None and (leg.claimed or leg.submission)]

    def too_fresh(self) -> bool:
        """Somebody wrote about this run a moment ago and may still be at it."""
        moments = [self.run.spec.created]
        moments += [event.at for event in (self.run.resumed, self.run.cancel, self.run.closed) if event]
        moments += [leg.ended for leg in self.run.legs.values() if leg.ended]
        moments += [s.at for leg in self._pending() for s in leg.submissions.values()]
        return self._now() - max(moments) < self.grace

    def _settle(self, leg: Leg) -> str:
        status = status_of(leg, self.answers)
        noticed = deletion_noticed(leg, notice_expected=self._habits.only_notice_tells_deletion)
        end, reason = classify_end(status, leg.job or "?", noticed=noticed)
        by = status.cancelled_by if status else ""
        self.journal.write(ev.EndFound(leg=leg.number, at=self._now(), end=end, reason=reason, by=by))
        return f"leg {leg.number} ended ({state_words(end)}): {reason}"

    def _false_start(self, leg: Leg) -> str:
        """A queued job that is gone without having begun: cancelled by somebody, or lost."""
        status = status_of(leg, self.answers)
        if status is None and leg.job and self._habits.deletes_unseen and JobId(leg.job) not in self.answers:
            return self._cancelled(leg.number, f"job {leg.job} was deleted while it waited; the scheduler does not say who deleted it")
        if status is None or status.state is not JobState.CANCELLED:
            return ""
        if status.cancelled_by:  # the handover counts these, and asks for another
            return f"job {leg.job} was cancelled by {status.cancelled_by} before it began"
        return self._cancelled(leg.number, f"job {leg.job} was cancelled before it began")

    def _cancelled(self, leg: int, reason: str, by: str = "") -> str:
        self.journal.write(ev.EndFound(leg=leg, at=self._now(), end=LegEnd.CANCELLED, reason=reason, by=by))
        return reason

    def _go_on(self, wanted: Continue) -> str:
        leg = self.run.legs.get(wanted.leg)
        gone = [s for s in leg.submissions.values() if s.job and not s.withdrawn and not s.gone_by] if leg else []
        if leg and len(gone) >= _MOST_FALSE_STARTS:
            return self._give_up(leg, len(gone))
        try:
            job = self._queue(wanted, after=None)
            return f"queued leg {wanted.leg} as job {job}" if job else ""
        except SubmitLimitReached as error:
            return self._no_place(wanted.leg, error)
        except QueuedLegCancelled as error:  # a job we did not know of until it was looked up by name
            self._cancelled(wanted.leg, error.message, error.by)
            self.run = read_folder(self.dir)
            closing = decide(self.run)
            if isinstance(closing, Close):
                self._close(closing)
            return error.message

    def _queue(self, wanted: Continue, *, after: str | None, legs: int | None = None) -> str:
        """The job; nothing where somebody else queues one just now, or has since this run was read."""
        with queueing_alone(self.dir, now=self._now()) as alone:
            if not alone or _jobs_of(read_folder(self.dir), wanted.leg) != _jobs_of(self.run, wanted.leg):
                return ""
            return self._handover().ensure_ahead(self.run, wanted, after=after, legs=legs)

    def _no_place(self, number: int, error: SubmitLimitReached) -> str:
        """Said once: the run shows it from then on, and every pass tries again."""
        leg = self.run.legs.get(number)
        standing = leg.submission if leg else None
        return "" if standing and standing.limited else f"leg {number} waits for a place in the queue: {error.message}"

    def _give_up(self, leg: Leg, count: int) -> str:
        status = status_of(leg, self.answers)
        code = f", exit code {status.exit_code}" if status and status.exit_code is not None else ""
        words = f"{state_words(status.state)}{code} {status.reason}".rstrip() if status else "no longer known to the scheduler"
        action = Close(
            state=RunState.FAILED,
            cause=f"{count} jobs for leg {leg.number} ended before they could begin",
            evidence=f"the last one, job {leg.job}, is {words}; see {self.dir.supervisor_log}",
            next=f"onward doctor, then onward resume {self.run.spec.id}",
        )
        self._close(action, leg.number)
        return f"gave up on leg {leg.number}: {action.cause}"

    def _close(self, action: Close, leg: int = 1) -> None:
        last = self.run.last_leg
        close_run(self.dir, self.journal, action, leg=max(leg, last.number if last else 1, self.run.first_leg), at=self._now())
        self._handover().withdraw(self.run, from_leg=1, reason="the run is over")

    def _handover(self) -> Handover:
        scheduler = self.context.scheduler(self.run.spec.cluster)
        return Handover(dir=self.dir, scheduler=scheduler, journal=self.journal, clock=self.context.clock, patience=5.0, live=self.answers)

    def _now(self) -> float:
        return self.context.clock.now()


def _jobs_of(run: Run, leg: int) -> set[str]:
    """The names of those that were asked for."""
    return set(run.legs[leg].submissions) if leg in run.legs else set()
