"""Cancel, stop, resume: what a person may ask of a run. Each may be repeated after a crash and does the same once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from onward.errors import Conflict, InvalidInput, NotAllowed, SchedulerError, SchedulerUnavailable, SubmitRefused
from onward.model import events as ev
from onward.model.job import JobId
from onward.model.policy.lifecycle import Close, Continue, decide
from onward.model.policy.next_resources import excluded_nodes, wanted_mem
from onward.model.policy.unrecorded_jobs import note_unrecorded
from onward.model.run import LegEnd, Run, RunState
from onward.operations.context import OperationsContext
from onward.operations.repair.one_run import repair_run
from onward.operations.runs.home import ensure_home
from onward.operations.runs.record import is_ours, read_folder
from onward.operations.runs.unrecorded import unrecorded
from onward.operations.tracker_access.server import announce_run
from onward.rundir.journal import Journal, desk_journal
from onward.rundir.layout import RunDir
from onward.rundir.root.reopened_runs import mark_reopened
from onward.rundir.run_end import ask_to_stop, close_run, mark_over, reopen_run
from onward.schedulers.base import live_jobs_of
from onward.supervisor.disk.salvage import journal_published
from onward.supervisor.leg.handover import Handover


def cancel(context: OperationsContext, dir: RunDir) -> Run:
    """End the run now. From here on no leg begins, even if the scheduler cannot be reached to end the one at work.

    Its jobs are ended also where nothing can be written down: on a full disk.
    """
    _may_act(context, dir)
    try:
        return _cancel(context, dir)
    except OSError as error:
        run = read_folder(dir)
        name, again = run.spec.name, f"onward cancel {run.spec.id}"
        failed = unrecorded(
            error, dir.root, done=f"the jobs of {name} are cancelled", left="the run is not marked as cancelled", again=again
        )
        try:
            _end_jobs(context, run)
        except SchedulerError as silent:
            raise SchedulerUnavailable(
                f"{name} is not cancelled: its jobs could not be ended, and nothing can be recorded in {dir.path} "
                f"({error.strerror}): {silent.message}",
                hint=f"run {again} again when the scheduler answers",
            ) from silent
        raise failed from error


def _cancel(context: OperationsContext, dir: RunDir) -> Run:
    run = _ask_to_cancel(context, dir)
    if run.closed:
        return run
    journal = desk_journal(dir)
    try:
        _handover(context, dir, run, journal).withdraw(run, from_leg=1, reason="the run was cancelled")
        context.scheduler(run.spec.cluster).cancel(_live_jobs(context, run))
        last = run.last_leg
        if last and last.end is None:
            journal.write(ev.EndFound(leg=last.number, at=context.clock.now(), end=LegEnd.CANCELLED, reason=f"cancelled by {context.user}"))
    except SchedulerError as error:
        raise SchedulerUnavailable(
            f"{run.spec.name} will not continue, but its jobs could not be ended: {error.message}",
            hint=f"run onward cancel {run.spec.id} again when the scheduler answers",
        ) from error
    journal_published(dir, leg=_now(run) + 1, journal=journal, clock=context.clock)  # by a leg that was killed before it could say so
    action = decide(read_folder(dir))
    if isinstance(action, Close):  # else its leg ended in this very moment, and closed it
        close_run(dir, journal, action, leg=_now(run), at=context.clock.now())
    return read_folder(dir)


def ask_to_cancel(context: OperationsContext, dir: RunDir) -> Run:
    """Write down that it is to end, and no more: no leg begins from here on, and `tend` ends its jobs."""
    _may_act(context, dir)
    try:
        return _ask_to_cancel(context, dir)
    except OSError as error:
        run = read_folder(dir)
        raise unrecorded(error, dir.root, left=f"{run.spec.name} is not cancelled", again=f"onward cancel {run.spec.id}") from error


def _ask_to_cancel(context: OperationsContext, dir: RunDir) -> Run:
    run = read_folder(dir)
    if run.closed:
        return _ended_already(dir, run, "cancelled")
    if not run.cancel:
        desk_journal(dir).write(ev.CancelRequested(leg=_now(run), at=context.clock.now(), by=context.user))
    return read_folder(dir)


def stop(context: OperationsContext, dir: RunDir) -> Run:
    """Have the leg at work save and end, and the run with it; where none is at work, end the run as it stands."""
    _may_act(context, dir)
    try:
        return _stop(context, dir)
    except OSError as error:
        run = read_folder(dir)
        name, id = run.spec.name, run.spec.id
        left = f"it cannot be recorded that {name} is to stop; onward cancel {id} ends its jobs all the same, without a last checkpoint"
        raise unrecorded(error, dir.root, left=left, again=f"onward stop {id}") from error


def _stop(context: OperationsContext, dir: RunDir) -> Run:
    run = _settled(context, dir)
    journal = desk_journal(dir)
    if run.closed:
        return _ended_already(dir, run, "stopped")
    if not run.stop:
        journal.write(ev.StopRequested(leg=_now(run), at=context.clock.now(), by=context.user))
    ask_to_stop(dir, leg=_now(run), at=context.clock.now(), by=context.user)
    run = read_folder(dir)
    if run.state is RunState.RUNNING:
        return run
    try:
        _handover(context, dir, run, journal).withdraw(run, from_leg=1, reason="the run was stopped")
    except SchedulerError as error:
        raise SchedulerUnavailable(
            f"{run.spec.name} will stop as soon as its next leg begins, which could not be removed from the queue: {error.message}",
            hint=f"run onward stop {run.spec.id} again when the scheduler answers",
        ) from error
    action = decide(run)
    if not isinstance(action, Close):  # it never began: nothing to save
        again = f"onward resume {run.spec.id} starts it"
        action = Close(state=RunState.CANCELLED, cause=f"stopped by {context.user} before it began", next=again)
    close_run(dir, journal, action, leg=_now(run), at=context.clock.now())
    return read_folder(dir)


def resume(context: OperationsContext, dir: RunDir, *, changes: Mapping[str, Any]) -> Run:
    """Open a stopped, failed or cancelled run again, as its next leg, from its newest good checkpoint."""
    _may_act(context, dir)
    run = _settled(context, dir)
    if run.state is RunState.FINISHED:
        raise Conflict(f"{run.spec.name} is finished: there is nothing to continue", hint="submit it again for a new run")
    if not run.closed and (run.stop or run.cancel):
        asked = "stopped: its training was asked to save" if run.stop else "cancelled: its jobs have not ended yet"
        raise Conflict(f"{run.spec.name} is being {asked}", hint=f"onward show {run.spec.id} shows when it is over; resume it then")
    if not run.closed:
        raise Conflict(
            f"{run.spec.name} is {run.state} and does not need to be resumed",
            hint=f"onward show {run.spec.id}; to change what it asks for, onward stop or cancel it first",
        )
    journal, closed, last = desk_journal(dir), run.closed, run.last_leg
    live = _live_jobs(context, run)
    ending = [job for job in live if last and job == last.job]  # it must be gone before the next leg begins
    for left in (leg for leg in run.legs.values() if not leg.claimed and leg.submission and leg.job and leg.job not in live):
        assert left.submission is not None
        words = f"job {left.job} was removed from the queue when the run was over"
        journal.write(ev.Gone(leg=left.number, at=context.clock.now(), name=left.submission.name, reason=words))
    leg = _opened_again(context, dir, run, journal, changes)
    run = read_folder(dir)
    try:
        wanted = Continue(leg=leg, mem=wanted_mem(run), exclude=excluded_nodes(run))
        _handover(context, dir, run, journal).ensure_ahead(run, wanted, after=ending[0] if ending else None)
    except (InvalidInput, SubmitRefused):  # not as it was asked for: over as before, to be resumed in another way
        over = Close(state=RunState(closed.state), cause=closed.cause, evidence=closed.evidence, next=closed.next)
        close_run(dir, journal, over, leg=leg, at=context.clock.now())
        raise
    return read_folder(dir)


def reopen(context: OperationsContext, dir: RunDir) -> None:
    """Open a run again that was cancelled before its turn in its pipeline had come. The pipeline queues it when it has."""
    _may_act(context, dir)
    _opened_again(context, dir, read_folder(dir), desk_journal(dir), {})


def _opened_again(context: OperationsContext, dir: RunDir, run: Run, journal: Journal, changes: Mapping[str, Any]) -> int:
    """The number of the leg that it goes on with."""
    known = [leg.number for leg in run.legs.values() if leg.claimed]
    known += [event.leg for event in (run.closed, run.cancel, run.stop) if event]
    leg = max(known) + 1
    journal.write(ev.Resumed(leg=leg, at=context.clock.now(), by=context.user, changes={**run.changes, **changes}))
    reopen_run(dir, leg=leg, at=context.clock.now())
    mark_reopened(dir)
    announce_run(context, run.spec, dir)
    return leg


def _may_act(context: OperationsContext, dir: RunDir) -> None:
    """A run's jobs are its owner's, and so is its folder. (Root may do as root pleases.) A copy of the folder has no jobs."""
    if os.geteuid() != 0 and not is_ours(dir):
        raise NotAllowed(f"the run in {dir.path} belongs to {dir.path.owner()}", hint="only its owner can cancel, stop or resume it")
    ensure_home(context, dir)


def _settled(context: OperationsContext, dir: RunDir) -> Run:
    """The run as it really stands: all its jobs may have been ended at the scheduler, with nobody left to write it down."""
    run = read_folder(dir)
    if not run.closed and run.last_leg and not run.stop and not run.cancel:
        with suppress(SchedulerError):
            repair_run(context, dir)
        run = read_folder(dir)
    return run


def _ended_already(dir: RunDir, run: Run, wanted: str) -> Run:
    """Asked twice is asked once; but a run that ended otherwise was not ended by this."""
    assert run.closed is not None
    if run.state is not RunState.CANCELLED:
        raise Conflict(f"{run.spec.name} is {run.state} and cannot be {wanted}: {run.closed.cause}", hint=f"onward show {run.spec.id}")
    mark_over(dir, run.closed)
    return run


def _now(run: Run) -> int:
    """The leg a request binds from: the newest that began, at least the one the run was resumed with."""
    last = run.last_leg
    return max(last.number if last else 1, run.first_leg)


def _handover(context: OperationsContext, dir: RunDir, run: Run, journal: Journal) -> Handover:
    return Handover(dir=dir, scheduler=context.scheduler(run.spec.cluster), journal=journal, clock=context.clock)


def _live_jobs(context: OperationsContext, run: Run) -> list[JobId]:
    """Every job of the run that the scheduler still has, and has as ours: also one that could not be taken back in time, or that no
    journal names."""
    scheduler = context.scheduler(run.spec.cluster)
    note_unrecorded([run], live_jobs_of(scheduler))
    named = {JobId(s.job): s.name for leg in run.legs.values() for s in leg.submissions.values() if s.job}
    answers = scheduler.status(list(named))
    return [job for job, status in answers.items() if status.state.live and status.name == named[job]]


def _end_jobs(context: OperationsContext, run: Run) -> None:
    """End every live job of the run and write nothing: those that wait first, the last of them first, since each holds the next."""
    ended: set[JobId] = set()
    while jobs := [job for job in _in_order_of_end(context, run) if job not in ended]:  # a leg may just have queued another
        for job in jobs:
            context.scheduler(run.spec.cluster).cancel([job])
        ended.update(jobs)


def _in_order_of_end(context: OperationsContext, run: Run) -> list[JobId]:
    scheduler = context.scheduler(run.spec.cluster)
    note_unrecorded([run], live_jobs_of(scheduler))
    legs = {s.name: leg for leg in run.legs.values() for s in leg.submissions.values()}
    asked = [s for leg in run.legs.values() for s in leg.submissions.values()]
    jobs = [JobId(s.job) for s in asked if s.job]
    for unheard in (s.name for s in asked if s.stands and not s.job):
        jobs += scheduler.find(unheard)
    live = [(legs[status.name], job) for job, status in scheduler.status(jobs).items() if status.state.live and status.name in legs]
    return [job for _, job in sorted(live, key=lambda one: (one[0].claimed is not None, -one[0].number))]
