"""Before a leg trains: may it begin, in this job? And its successor, queued before the training starts."""

from __future__ import annotations

import logging
import math
import threading
from contextlib import suppress

from onward.errors import SchedulerError, SubmitLimitReached
from onward.model import events as ev
from onward.model.job import Allocation
from onward.model.policy.lifecycle import Close, Continue, NothingToDo, decide
from onward.model.policy.next_resources import excluded_nodes, wanted_mem
from onward.model.policy.storage_patience import early_pause, may_wait_again
from onward.model.run import Leg, LegEnd, Run
from onward.rundir.journal import Journal, desk_journal, read_run
from onward.rundir.run_end import close_run, mark_over
from onward.schedulers.base import requeues
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.earlier_legs import (
    SETTLE_SECONDS,
    StillRunning,
    ask_for_ends,
    ask_once_about_ends,
    legs_with_unknown_end,
    legs_without_end,
)
from onward.supervisor.leg.end import queue_or_close
from onward.supervisor.leg.handover import QueuedLegCancelled

log = logging.getLogger(__name__)

_WAIT_IN_PLACE = 0.25  # of a leg: for a predecessor that still runs, where jobs may not submit
_NO_LIMIT = 3600.0  # seconds, where a leg has none


def leg_of_job(run: Run, queued_leg: int, allocation: Allocation) -> int:
    """The leg that this job stands for. A job that was put back into the queue still has the script of its first leg (`told`).

    Where the job before never began its leg (it was killed at its start, or its node had no storage), this one lives that leg.
    """
    if not allocation.restarted:
        last = run.last_leg
        return min(queued_leg, last.number + 1 if last and last.number >= run.first_leg else max(run.first_leg, 1))
    job = allocation.job
    mine = [leg.number for leg in run.legs.values() if any(s.job == job and s.stands for s in leg.submissions.values())]
    return max([queued_leg, *mine])


def is_free(run: Run, leg: int) -> bool:
    """Whether the run goes on, and nobody has begun this leg. From the journals alone: cheap, and before anything is asked."""
    known = run.legs.get(leg)
    return run.closed is None and run.cancel is None and leg >= run.first_leg and not (known and (known.claimed or known.end))


def may_begin(context: LegContext) -> bool:
    """Settle what became of earlier legs, and let policy say whether this leg may run, in this job."""
    run = read_run(context.dir)
    if run.closed:
        log.info("the run is over (%s); this job exits", run.closed.state)
        mark_over(context.dir, run.closed)
        return False
    journal = desk_journal(context.dir)
    try:
        _note_second_life(context, run, journal)
        _journal_own_submission(context, run, journal)
        earlier = [leg for leg in legs_without_end(run) if leg.number < context.leg]
        if earlier and _bring_untold(context, earlier):
            run = read_run(context.dir)
            earlier = [leg for leg in legs_without_end(run) if leg.number < context.leg]
        found = ask_for_ends(earlier, context.scheduler, context.clock, settle_for=SETTLE_SECONDS + _early_pause(context, run))
        for event in [*found, *ask_once_about_ends(legs_with_unknown_end(run), context.scheduler, context.clock)]:
            log.info("leg %d ended %s: %s", event.leg, event.end, event.reason)
            journal.write(event)
    except StillRunning as error:
        log.info("%s; this job came too early and exits", error)
        _leave_to_another(context, run, error.job, journal)
        return False
    run = read_run(context.dir)
    action = decide(run)
    match action:
        case Close():
            log.info("the run is over: %s", action.cause)
            close_run(context.dir, journal, action, leg=run.last_leg.number if run.last_leg else context.leg, at=context.clock.now())
            return False
        case Continue() if action.leg != context.leg:
            log.info("leg %d is next, not this one; this job exits", action.leg)
            if context.allocation.restarted and action.leg == context.leg + 1:
                queue_or_close(context, run, action, journal=journal)
            return False
        case Continue() if not _suits(context, run, action):
            log.info("this job does not have what leg %d needs (memory %s MiB, without %s)", action.leg, action.mem, action.exclude)
            queue_or_close(context, run, action, journal=journal)
            return False
        case Continue():
            return True
        case NothingToDo():
            log.info("leg %d has been claimed; this job exits", context.leg)
            return False


def _bring_untold(context: LegContext, legs: list[Leg]) -> bool:
    from onward.supervisor.disk.leftovers import bring_untold  # rarely needed

    disk = context.spec.cluster.local_disk
    return bring_untold(context.dir, context.spec.id, [leg.number for leg in legs], named=[disk] if disk else [])


def _note_second_life(context: LegContext, run: Run, journal: Journal) -> None:
    """The scheduler started this job again: its host was lost, or somebody requeued it. The leg it had begun is over."""
    leg = run.legs.get(context.leg)
    if context.allocation.restarted and leg and leg.claimed and leg.end is None and leg.claimed.job == context.allocation.job:
        hosts = ", ".join(leg.claimed.hosts)
        words = f"job {context.allocation.job} was started again: {hosts} was lost, or someone requeued the job"
        log.info("leg %d ended %s: %s", leg.number, LegEnd.NODE_LOST, words)
        journal.write(ev.EndFound(leg=leg.number, at=context.clock.now(), end=LegEnd.NODE_LOST, reason=words))


def _journal_own_submission(context: LegContext, run: Run, journal: Journal) -> None:
    """Write down that this job lives another leg than it was queued for, so that it is found by that leg's number."""
    job, at = context.allocation.job, context.clock.now()
    queued = [(leg.number, s) for leg in run.legs.values() for s in leg.submissions.values() if s.job == job and s.stands]
    if context.allocation.restarted or any(number == context.leg for number, _ in queued):
        return
    for number, own in queued:
        log.info("job %s was queued for leg %d, and runs leg %d instead, which no job has begun", job, number, context.leg)
        words = f"its job runs leg {context.leg} instead, which no job had begun"
        journal.write(ev.Submitting(leg=context.leg, at=at, name=own.name, mem=own.mem, time=own.time, exclude=own.exclude))
        journal.write(ev.Submitted(leg=context.leg, at=at, name=own.name, job=job))
        journal.write(ev.Gone(leg=number, at=at, name=own.name, reason=words))


def _early_pause(context: LegContext, run: Run) -> float:
    """How much longer than usual to wait for a predecessor that still runs."""
    limit = run.resources.time
    if context.spec.cluster.legs_ahead:  # nobody can be queued in our place
        return (limit or _NO_LIMIT) * _WAIT_IN_PLACE
    leg = run.legs.get(context.leg)
    return early_pause(sum(s.withdrawn for s in leg.submissions.values()) if leg else 0, limit)


def _leave_to_another(context: LegContext, run: Run, predecessor: str, journal: Journal) -> None:
    """This job came too early. The predecessor may be about to end, or to live for hours: another job waits for it, held on it."""
    if context.spec.cluster.legs_ahead:
        log.warning("jobs may not submit here: `onward tend` continues from here if no later leg is queued")
        return
    wanted = Continue(leg=context.leg, mem=wanted_mem(run), exclude=excluded_nodes(run))
    try:
        handover = context.handover(journal=journal, patience=60.0)
        job = handover.ensure(run, wanted, after=predecessor)
        log.info("leg %d is job %s, held until job %s ends", context.leg, job, predecessor)
    except (SchedulerError, QueuedLegCancelled) as error:
        log.error("cannot queue a job in place of this one; job %s queues the next leg when it ends: %s", predecessor, error)


def _suits(context: LegContext, run: Run, wanted: Continue) -> bool:
    """Whether this job has the memory, and is not on a node, that the policy asks for and warns of by now."""
    leg = run.legs.get(context.leg)
    mine = [s for s in leg.submissions.values() if s.job == context.allocation.job] if leg else []
    enough = all((s.mem or 0) >= (wanted.mem or 0) for s in mine)
    return enough and not any(host in wanted.exclude for host in context.allocation.hosts)


class Successor:
    """Queues the next leg's job, held on this one, in a thread: a scheduler that does not answer must not hold up training.

    It begins before the leg is claimed. So a job that is killed at its start, or whose storage fails, has a successor, which lives
    its leg in its place. A job that leaves without living a leg takes it back.
    """

    def __init__(self, context: LegContext, run: Run) -> None:
        self.done = threading.Event()
        self.wanted = _next_leg(context, run)
        self._given_up = False
        self._thread: threading.Thread | None = None
        self._context = context
        self._run = run
        self._journal = desk_journal(context.dir, patient=True)  # not the leg's: it may turn out to be another job's
        self._handover = context.handover(journal=self._journal, patience=86400.0)
        if context.spec.cluster.legs_ahead:  # jobs may not submit here: the next legs are queued already
            self.done.set()
            return
        self._thread = threading.Thread(target=self._work, name="handover", daemon=True)
        self._thread.start()

    def fitting(self, run: Run) -> Successor:
        """Itself; or another, where what is known by now asks for another job, such as one with more memory."""
        if _next_leg(self._context, run) == self.wanted:
            return self
        self.take_back("the next leg needs other resources")
        return Successor(self._context, run)

    def give_up(self) -> None:
        """The leg is ending: what is not queued by now is decided again."""
        self._given_up = True
        if self._thread:
            self._thread.join(timeout=30)
        self._context.patiently("recording the next leg's job", self._journal.flush)
        self._journal.close()

    def take_back(self, reason: str) -> None:
        """This job leaves without having lived its leg."""
        self._given_up = True
        if self._thread:
            self._thread.join(timeout=30)
        try:
            self._handover.take_back_made(reason=reason)
        except SchedulerError as error:
            log.warning("the job for leg %d is still queued; it checks by itself whether it is needed: %s", self.wanted.leg, error)
        self._journal.close()

    def _work(self) -> None:
        context, number = self._context, self.wanted.leg
        able = requeues(context.scheduler)
        if context.allocation.restarted and able:
            with suppress(SchedulerError):
                able.requeued(context.allocation.job)
        handover = self._handover
        handover.abandoned = lambda: self._given_up
        handover.limit_patience = math.inf  # a place in the queue may become free at any time of the leg
        handover.on_limit = self.done.set  # and training does not wait for it
        try:
            job = handover.ensure(self._run, self.wanted, after=context.allocation.job)
            log.info("leg %d is queued as job %s", number, job)
        except SubmitLimitReached as error:
            log.info("leg %d could not be queued while this leg ran: %s", number, error)
        except (SchedulerError, QueuedLegCancelled, OSError) as error:
            log.warning("leg %d could not be queued now; it is retried when this leg ends: %s", number, error)
            self._journal.write(ev.Warned(leg=context.leg, at=context.clock.now(), text=f"leg {number} could not be queued: {error}"))
        finally:
            self.done.set()


def _next_leg(context: LegContext, run: Run) -> Continue:
    return Continue(leg=context.leg + 1, mem=wanted_mem(run), exclude=excluded_nodes(run))


def abandon_start(context: LegContext, run: Run, successor: Successor | None, error: OSError) -> int:
    """The run's folder could not be used for as long as this leg can afford. Another job waits on, but not for ever."""
    waited = context.waited + context.patience
    log.error("the run's folder could not be used for %.0f s: %s", context.patience, error)
    words = f"the run's folder could not be used: {error}"
    if context.spec.cluster.legs_ahead or context.ending() or successor is None:
        return 1  # the next leg's job is queued, and lives this leg
    if not may_wait_again(waited):
        log.error("jobs for leg %d have waited %.0f s in total; `onward tend` continues from here", context.leg, waited)
        successor.take_back(words)
        return 1
    handover = context.handover(journal=desk_journal(context.dir, patient=True), patience=60.0)
    handover.waited = waited
    wanted = Continue(leg=context.leg, mem=wanted_mem(run), exclude=excluded_nodes(run))
    try:
        job = handover.ensure(run, wanted, after=context.allocation.job)
        log.info("leg %d is job %s, after this one", context.leg, job)
        successor.take_back(words)
    except (SchedulerError, QueuedLegCancelled, OSError) as failed:
        log.warning("the job that is queued for leg %d runs leg %d instead: %s", context.leg + 1, context.leg, failed)
    handover.journal.close()
    return 1
