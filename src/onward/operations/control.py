"""Cancel, stop, resume: what a person may ask of a run. Each may be repeated after a crash and does the same once."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from onward.errors import Conflict, SchedulerError, SchedulerUnavailable
from onward.model import event as ev
from onward.model.job import JobId
from onward.model.lifecycle import Close, Continue, decide, excluded_nodes, wanted_mem
from onward.model.run import LegEnd, Run, RunState
from onward.operations.wiring import Desk
from onward.rundir.closing import close_run, reopen_run
from onward.rundir.journal import Journal, desk_journal, read_run
from onward.rundir.layout import RunDir
from onward.sdk.files import write_whole
from onward.supervisor.handover import Handover


def cancel(desk: Desk, dir: RunDir) -> Run:
    """End the run now. From here on no leg begins, even if the scheduler cannot be reached to end the one at work."""
    run = _open_run(dir)
    journal = desk_journal(dir)
    if not run.cancel:
        journal.write(ev.CancelRequested(leg=_now(run), at=desk.clock.now(), by=getpass.getuser()))
    run = read_run(dir)
    try:
        _handover(desk, dir, run, journal).withdraw(run, from_leg=1, reason="the run was cancelled")
        last = run.last_leg
        if last and last.end is None and last.job:
            desk.scheduler(run.spec.cluster).cancel([JobId(last.job)])
            words = f"cancelled by {getpass.getuser()}"
            journal.write(ev.Found(leg=last.number, at=desk.clock.now(), end=LegEnd.CANCELLED, reason=words))
    except SchedulerError as error:
        raise SchedulerUnavailable(
            f"{run.spec.name} will not go on, but its running job could not be ended: {error.message}",
            hint=f"onward cancel {run.spec.id} again when the scheduler answers",
        ) from error
    _close(desk, dir, journal, run)
    return read_run(dir)


def stop(desk: Desk, dir: RunDir) -> Run:
    """Have the leg at work save and end, and the run with it; where none is at work, end the run as it stands."""
    run = _open_run(dir)
    journal = desk_journal(dir)
    if not run.stop:
        journal.write(ev.StopRequested(leg=_now(run), at=desk.clock.now(), by=getpass.getuser()))
    write_whole(dir.stop_request, json.dumps({"at": desk.clock.now(), "by": getpass.getuser()}))
    run = read_run(dir)
    if run.state is not RunState.RUNNING:
        _handover(desk, dir, run, journal).withdraw(run, from_leg=1, reason="the run was stopped")
        action = decide(run)
        if not isinstance(action, Close):  # it never began: nothing to save
            action = Close(state=RunState.CANCELLED, cause=f"stopped by {getpass.getuser()} before it began")
        close_run(dir, journal, action, leg=_now(run), at=desk.clock.now())
    return read_run(dir)


def resume(desk: Desk, dir: RunDir, *, changes: Mapping[str, Any]) -> Run:
    """Open a stopped, failed or cancelled run again, as its next leg, from its newest good checkpoint."""
    run = read_run(dir)
    if run.state is RunState.FINISHED:
        raise Conflict(f"{run.spec.name} is finished: there is nothing to go on with", hint="submit it again for a new run")
    if not run.closed:
        raise Conflict(f"{run.spec.name} is {run.state} and needs no resuming", hint=f"onward show {run.spec.id}")
    journal = desk_journal(dir)
    known = [leg.number for leg in run.legs.values() if leg.claimed]
    known += [event.leg for event in (run.closed, run.cancel, run.stop) if event]
    leg = max(known) + 1
    last = run.last_leg
    before = {**run.changes, **changes}
    journal.write(ev.Resumed(leg=leg, at=desk.clock.now(), by=getpass.getuser(), changes=before))
    reopen_run(dir)
    run = read_run(dir)
    after = _still_ending(desk, run, last.job if last else None)
    wanted = Continue(leg=leg, mem=wanted_mem(run), exclude=excluded_nodes(run))
    _handover(desk, dir, run, journal).ensure(run, wanted, after=after)
    return read_run(dir)


def _open_run(dir: RunDir) -> Run:
    run = read_run(dir)
    if run.closed:
        raise Conflict(f"{run.spec.name} is {run.state} already: {run.closed.cause}", hint=f"onward show {run.spec.id}")
    return run


def _now(run: Run) -> int:
    """The leg a request binds from: the newest that began, at least the one the run was resumed with."""
    last = run.last_leg
    return max(last.number if last else 1, run.first_leg)


def _handover(desk: Desk, dir: RunDir, run: Run, journal: Journal) -> Handover:
    return Handover(dir=dir, scheduler=desk.scheduler(run.spec.cluster), journal=journal, clock=desk.clock)


def _close(desk: Desk, dir: RunDir, journal: Journal, run: Run) -> None:
    action = decide(run)
    if isinstance(action, Close):
        close_run(dir, journal, action, leg=_now(run), at=desk.clock.now())


def _still_ending(desk: Desk, run: Run, job: str | None) -> str | None:
    """A job that is still being ended must be gone before the next leg begins."""
    if job is None:
        return None
    status = desk.scheduler(run.spec.cluster).status([JobId(job)]).get(JobId(job))
    return job if status and status.state.live else None
