"""The end of a leg: its last word, and what follows from it for the run."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from onward.errors import SchedulerError, SubmitLimitReached, SubmitRefused
from onward.model import events as ev
from onward.model.job import JobId, JobState, JobStatus
from onward.model.policy.job_end import classify_end
from onward.model.policy.lifecycle import Close, Continue, NothingToDo, decide
from onward.model.quantity import format_size
from onward.model.run import LegEnd, Run, RunState
from onward.rundir.journal import Journal, desk_journal, read_run
from onward.rundir.layout import LegLocal
from onward.rundir.run_end import close_run, mark_over
from onward.schedulers.base import capabilities_of, requeues
from onward.sdk.atomic_files import write_whole
from onward.supervisor.leg.context import JobRequeue, LegContext
from onward.supervisor.leg.handover import QueuedLegCancelled, queued_ahead, suits_next_leg
from onward.supervisor.leg.verdict import TrainingOutcome, judge_leg

if TYPE_CHECKING:
    from onward.supervisor.leg.watch import TrainingWatch

log = logging.getLogger(__name__)


def write_end(context: LegContext, outcome: TrainingOutcome, training: TrainingWatch) -> bool:
    """The leg's last word. False where only the scheduler knows why the leg was ended, and it does not say yet."""
    capabilities = capabilities_of(context.scheduler)
    outcome = replace(outcome, again_code=capabilities.again_exit, final_code=capabilities.final_exit)
    verdict, by = judge_leg(outcome), ""
    if verdict is None and (status := _ask_about_myself(context)):
        verdict, by = classify_end(status, status.id), status.cancelled_by
    if verdict is None:
        log.warning("the scheduler ended this job and does not say why yet; the next leg will ask again")
        return False
    end, reason = verdict
    if training.saves.last_missed is not None and not training.deleted:
        reason = f"{reason}; the checkpoint of step {training.saves.last_missed} could not be stored"
    context.finished = end is LegEnd.DONE and not training.saves.left_behind
    progress = training.spool.progress
    log.info("leg %d ends %s: %s", context.leg, end, reason)
    context.journal.write(
        ev.Ended(
            leg=context.leg,
            at=context.clock.now(),
            end=end,
            reason=reason,
            evidence="" if end in (LegEnd.DONE, LegEnd.TIME_LIMIT, LegEnd.AGAIN) else outcome.evidence,
            first_step=progress.first_step,
            last_step=progress.last_step,
            stop_seconds=training.stop_seconds,
            stop_cut=training.ended and training.stop_seconds is not None,
            peak_mem=outcome.peak_mem,
            final=outcome.final,
            by=by,
        )
    )
    return True


def keep_untold(context: LegContext, local: LegLocal) -> None:
    """What the run's folder does not take, even now, stays on the node: a later leg there, or of any run, brings it."""
    try:
        context.journal.flush()
        return
    except OSError:
        untold = context.journal.waiting
    try:
        write_whole(local.untold, untold)
    except OSError as error:
        log.error("the last events of leg %d cannot be kept on the node either: %s", context.leg, error)


def _ask_about_myself(context: LegContext) -> JobStatus | None:
    job = JobId(context.allocation.job)
    try:
        status = context.scheduler.status([job]).get(job)
    except SchedulerError:
        return None
    return None if status is None or status.state.live or status.state is JobState.FAILED else status


def continue_or_close(context: LegContext) -> None:
    """Close the run, or see to it that the next leg is queued with what it needs. May be repeated, wherever it failed."""
    context.journal.flush()
    run = read_run(context.dir)
    action = decide(run)
    match action:
        case Close():
            log.info("the run is over, %s: %s", action.state, action.cause)
            close_run(context.dir, context.journal, action, leg=context.leg, at=context.clock.now())
            _withdraw_next(context, run)
        case Continue():
            queue_or_close(context, run, action, journal=context.journal)
        case NothingToDo():
            if run.closed:
                mark_over(context.dir, run.closed)
                _withdraw_next(context, run)


def _withdraw_next(context: LegContext, run: Run) -> None:
    """Last: where the storage does not take that the run is over, the next leg's job sees to it."""
    try:
        context.handover(patience=30.0).withdraw(run, from_leg=context.leg + 1, reason="the run is over")
    except SchedulerError as error:
        log.warning("leg %d is still queued; it will find the run closed, and leave: %s", context.leg + 1, error)


def queue_or_close(context: LegContext, run: Run, wanted: Continue, *, journal: Journal) -> None:
    """See to it that a leg is queued, after this job. Where that can never be, end the run and say so."""
    if context.spec.cluster.legs_ahead:
        if not queued_ahead(run, wanted):
            log.warning("leg %d should be queued but is not, and jobs may not submit here; `onward tend` continues from here", wanted.leg)
        return
    try:
        job = context.handover(journal=journal, patience=30.0).ensure(run, wanted, after=context.allocation.job)
        log.info("leg %d is job %s", wanted.leg, job)
    except QueuedLegCancelled as error:
        journal.write(ev.EndFound(leg=wanted.leg, at=context.clock.now(), end=LegEnd.CANCELLED, reason=error.message, by=error.by))
        closing = decide(read_run(context.dir))
        if isinstance(closing, Close):
            close_run(context.dir, journal, closing, leg=wanted.leg, at=context.clock.now())
    except SubmitLimitReached as error:
        if _plan_requeue(context, run, wanted, journal=journal):
            log.info("%s; this job goes back into the queue, as leg %d", error, wanted.leg)
        else:
            log.warning("%s; leg %d waits for a place in the queue: `onward tend` or a running `onward up` submits it", error, wanted.leg)
    except SubmitRefused as error:
        log.error("%s", error)
        journal.write(ev.Warned(leg=context.leg, at=context.clock.now(), text=f"leg {wanted.leg} was refused: {error}"))
        if (wanted.mem or 0) > (run.resources.mem or 0):  # not for now, but for what it asks
            refusal = Close(
                state=RunState.FAILED,
                cause=f"leg {wanted.leg} needs more memory ({format_size(wanted.mem or 0)}), which the scheduler refused",
                evidence=error.message,
                next=f"onward resume {context.spec.id} --mem SIZE --mem-max SIZE, with sizes that its nodes have",
            )
            close_run(context.dir, journal, refusal, leg=wanted.leg, at=context.clock.now())
    except SchedulerError as error:
        log.error("%s; `onward tend` continues from here", error)


# ── the same job again ────────────────────────────────────────────────────────


def _plan_requeue(context: LegContext, run: Run, wanted: Continue, *, journal: Journal) -> bool:
    """Have this job be the next leg too, where no further job may be submitted and it has what that leg needs.

    Written down before it happens: if this process dies before, `onward tend` finds that the job has ended, and submits another.
    """
    job = context.allocation.job
    leg = run.legs.get(context.leg)
    own = next((s for s in leg.submissions.values() if s.job == job and s.stands), None) if leg else None
    if own is None or requeues(context.scheduler) is None or not suits_next_leg(own, wanted):
        return False
    now = context.clock.now()
    journal.write(ev.Submitting(leg=wanted.leg, at=now, name=own.name, mem=own.mem, time=own.time, exclude=own.exclude))
    journal.write(ev.Submitted(leg=wanted.leg, at=now, name=own.name, job=job))
    context.requeue = JobRequeue(leg=wanted.leg, name=own.name)
    return True


def leave_job(context: LegContext, code: int) -> int:
    """The last act of a job's process, which returns its exit code: where it was planned, the job goes back into the queue."""
    able = requeues(context.scheduler)
    if context.requeue is None or able is None:
        return code
    try:
        wanted = able.requeue(context.allocation.job)
    except SchedulerError as error:
        log.error(
            "%s; leg %d waits for a place in the queue: `onward tend` or a running `onward up` submits it", error, context.requeue.leg
        )
        gone = ev.Gone(leg=context.requeue.leg, at=context.clock.now(), name=context.requeue.name, reason=error.message)
        desk_journal(context.dir, patient=True).write(gone)
        return code
    return code if wanted is None else wanted
