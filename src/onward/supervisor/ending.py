"""The end of a leg: its last word, and what follows from it for the run."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from onward.errors import SchedulerError, SubmitRefused
from onward.model import event as ev
from onward.model.job import JobId, JobState
from onward.model.lifecycle import Close, Continue, Rest, classify, decide
from onward.model.quantity import format_size
from onward.model.run import LegEnd, Run, RunState
from onward.rundir.closing import close_run
from onward.rundir.journal import Journal, read_run
from onward.schedulers.base import habits_of
from onward.supervisor.handover import QueuedLegCancelled, queued_ahead
from onward.supervisor.scene import Scene
from onward.supervisor.verdict import Outcome, judge

if TYPE_CHECKING:
    from onward.supervisor.training import Training

log = logging.getLogger(__name__)


def write_end(scene: Scene, outcome: Outcome, training: Training) -> bool:
    """The leg's last word. False where only the scheduler knows why the leg was ended, and it does not say yet."""
    habits = habits_of(scene.scheduler)
    outcome = replace(outcome, again_code=habits.again_exit, final_code=habits.final_exit)
    verdict = judge(outcome) or _ask_about_myself(scene)
    if verdict is None:
        log.warning("the scheduler ended this job and does not say why yet; the next leg will ask")
        return False
    end, reason = verdict
    progress = training.spool.progress
    log.info("leg %d ends %s: %s", scene.leg, end, reason)
    scene.journal.write(
        ev.Ended(
            leg=scene.leg,
            at=scene.clock.now(),
            end=end,
            reason=reason,
            evidence="" if end in (LegEnd.DONE, LegEnd.TIME_LIMIT, LegEnd.AGAIN) else outcome.evidence,
            first_step=progress.first_step,
            last_step=progress.last_step,
            stop_seconds=training.stop_seconds,
            peak_mem=outcome.peak_mem,
            final=outcome.final,
        )
    )
    return True


def _ask_about_myself(scene: Scene) -> tuple[LegEnd, str] | None:
    job = JobId(scene.allocation.job)
    try:
        status = scene.scheduler.status([job]).get(job)
    except SchedulerError:
        return None
    if status is None or status.state.live or status.state is JobState.FAILED:
        return None
    return classify(status, job)


def go_on_or_close(scene: Scene) -> None:
    """Close the run, or see to it that the next leg is queued with what it needs."""
    run = read_run(scene.dir)
    action = decide(run)
    match action:
        case Close():
            log.info("the run is over, %s: %s", action.state, action.cause)
            try:
                scene.handover(patience=30.0).withdraw(run, from_leg=scene.leg + 1, reason="the run is over")
            except SchedulerError as error:
                log.warning("leg %d is still queued; it will find the run closed, and leave: %s", scene.leg + 1, error)
            close_run(scene.dir, scene.journal, action, leg=scene.leg, at=scene.clock.now())
        case Continue():
            queue_or_close(scene, run, action, journal=scene.journal)
        case Rest():
            pass


def queue_or_close(scene: Scene, run: Run, wanted: Continue, *, journal: Journal) -> None:
    """See to it that a leg is queued, after this job. Where that can never be, end the run and say so."""
    if scene.spec.cluster.legs_ahead:
        if not queued_ahead(run, wanted):
            log.warning("leg %d is not queued as it must be, and jobs may not submit here; `onward tend` goes on from here", wanted.leg)
        return
    try:
        job = scene.handover(journal=journal, patience=30.0).ensure(run, wanted, after=scene.allocation.job)
        log.info("leg %d is job %s", wanted.leg, job)
    except QueuedLegCancelled as error:
        journal.write(ev.Found(leg=wanted.leg, at=scene.clock.now(), end=LegEnd.CANCELLED, reason=error.message))
        closing = decide(read_run(scene.dir))
        if isinstance(closing, Close):
            close_run(scene.dir, journal, closing, leg=wanted.leg, at=scene.clock.now())
    except SubmitRefused as error:
        log.error("%s", error)
        journal.write(ev.Warned(leg=scene.leg, at=scene.clock.now(), text=f"leg {wanted.leg} was refused: {error}"))
        if (wanted.mem or 0) > (run.resources.mem or 0):  # not for now, but for what it asks
            refusal = Close(
                state=RunState.FAILED,
                cause=f"leg {wanted.leg} needs more memory ({format_size(wanted.mem or 0)}), and the scheduler refused to give it",
                evidence=error.message,
                next=f"onward resume {scene.spec.id} --mem SIZE --mem-max SIZE, with sizes that its nodes have",
            )
            close_run(scene.dir, journal, refusal, leg=wanted.leg, at=scene.clock.now())
    except SchedulerError as error:
        log.error("%s; `onward tend` goes on from here", error)
