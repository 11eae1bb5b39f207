"""A run whose spec cannot be read. It cannot go on, and its jobs must be endable: their names are in its journals, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterable

from onward.errors import OnwardError, SchedulerUnavailable
from onward.model import events as ev
from onward.model.job import JobId
from onward.model.policy.lifecycle import Close
from onward.model.run import RunState
from onward.operations.context import OperationsContext
from onward.operations.runs.home import ensure_home
from onward.rundir.journal import desk_journal, read_events, read_spec
from onward.rundir.layout import RunDir
from onward.rundir.run_end import close_run
from onward.schedulers.base import Scheduler


def spec_damage(dir: RunDir) -> str:
    """What is wrong with the spec, in words; empty where it can be read, and where the storage does not say now."""
    try:
        read_spec(dir)
    except ValueError as error:
        return str(error)
    except OSError:
        pass
    return ""


def what_to_do(dir: RunDir, *, cancelled: bool = False) -> str:
    good = f"put a good copy of {dir.spec} back (that of a clone differs by its id alone)"
    kept = f"Its checkpoints, in {dir.checkpoints}, are as they were"
    if cancelled:
        return f"to continue it, {good}, then onward resume {dir.path}. {kept}"
    return f"{good}, and the run continues; or `onward cancel {dir.path}` ends its jobs. {kept}"


def cancel_damaged(context: OperationsContext, dir: RunDir) -> list[JobId]:
    """End every job of the run, whichever cluster of this machine has it, and close the run. Returns the jobs."""
    ensure_home(context, dir)
    events = read_events(dir)
    names = _names(events)
    leg = max((event.leg for event in events), default=1)
    journal = desk_journal(dir)
    journal.write(ev.CancelRequested(leg=leg, at=context.clock.now(), by=context.user))
    ended: list[JobId] = []
    answered, silent = 0, ""
    for name, scheduler in _schedulers(context):
        try:
            jobs = _live(scheduler, names)
            scheduler.cancel(jobs)
        except OnwardError as error:
            silent = silent or f"{name}: {error.message}"
            continue
        answered, ended = answered + 1, ended + jobs
    if silent and not ended and (not answered or names):
        raise SchedulerUnavailable(
            f"{dir.path.name} will not continue, but none of its jobs was found, as not all schedulers answered: {silent}",
            hint=f"onward cancel {dir.path} again when it answers; its jobs are named {', '.join(names) or 'in its journals'}",
        )
    closing = Close(state=RunState.CANCELLED, cause=f"cancelled by {context.user}", next=what_to_do(dir, cancelled=True))
    close_run(dir, journal, closing, leg=leg, at=context.clock.now())
    return ended


def _names(events: Iterable[ev.Event]) -> dict[str, str]:
    """Of jobs that may still be there: name → id, or nothing where nobody heard whether it was accepted."""
    names: dict[str, str] = {}
    for event in sorted(events, key=lambda event: event.at):
        match event:
            case ev.Submitting():
                names.setdefault(event.name, "")
            case ev.Submitted():
                names[event.name] = event.job
            case ev.Refused() | ev.Withdrawn() | ev.Gone():
                names.pop(event.name, None)
            case _:
                pass
    return names


def _schedulers(context: OperationsContext) -> Iterable[tuple[str, Scheduler]]:
    """Every cluster of this machine: which of them the run is on, its spec would say."""
    profiles = [name for name, profile in context.settings.clusters.items() if not profile.ssh]
    for name in dict.fromkeys([context.settings.cluster("auto")[0].name, "local", *profiles]):
        yield name, context.scheduler(context.settings.cluster(name)[0])


def _live(scheduler: Scheduler, names: dict[str, str]) -> list[JobId]:
    """By id and name together, and where there is no id by name: a name has a random part, and is given once."""
    jobs = [JobId(job) for job in names.values() if job]
    for name in (name for name, job in names.items() if not job):
        jobs += scheduler.find(name)
    return [job for job, status in scheduler.status(jobs).items() if status.state.live and status.name in names]
