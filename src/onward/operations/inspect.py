"""What a run looks like from outside: the record that `runs`, `show` and everything that reads JSON gets. Schema 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onward.checkpoints.find import names
from onward.checkpoints.manifest import check_sizes, read_manifest
from onward.checkpoints.manifest import verify as verify_checkpoint
from onward.errors import CheckpointDamaged, SchedulerUnavailable
from onward.model.job import JobId, JobState, JobStatus
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.operations.wiring import Desk
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.rundir.spool import Progress, first_step, leg_progress

SCHEMA = 1

_ENDED_AS = {
    LegEnd.DONE: JobState.FINISHED,
    LegEnd.AGAIN: JobState.FINISHED,
    LegEnd.TIME_LIMIT: JobState.TIMED_OUT,
    LegEnd.PREEMPTED: JobState.PREEMPTED,
    LegEnd.OUT_OF_MEMORY: JobState.OUT_OF_MEMORY,
    LegEnd.CRASHED: JobState.FAILED,
    LegEnd.STALLED: JobState.FAILED,
    LegEnd.NODE_LOST: JobState.NODE_FAILED,
    LegEnd.CANCELLED: JobState.CANCELLED,
    LegEnd.LOST: JobState.UNKNOWN,
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run with what the scheduler says of its live jobs. `answers` is None where it did not say."""

    dir: RunDir
    run: Run
    answers: Mapping[JobId, JobStatus] | None

    def status(self, leg: Leg) -> JobStatus | None:
        return (self.answers or {}).get(JobId(leg.job)) if leg.job else None


def look(desk: Desk, dirs: Iterable[RunDir]) -> list[Seen]:
    """Read runs, and ask each cluster once for all their live jobs. A cluster that does not answer costs only its column."""
    runs = [(dir, read_run(dir)) for dir in dirs]
    wanted: dict[str, list[JobId]] = {}
    for _, run in runs:
        if not run.closed:
            jobs = [JobId(leg.job) for leg in run.legs.values() if leg.job and leg.end is None]
            wanted.setdefault(run.spec.cluster.name, []).extend(jobs)
    answers: dict[str, Mapping[JobId, JobStatus] | None] = {}
    for _, run in runs:
        name = run.spec.cluster.name
        if name in answers or not wanted.get(name):
            continue
        try:
            answers[name] = desk.scheduler(run.spec.cluster).status(wanted[name])
        except SchedulerUnavailable:
            answers[name] = None
    return [Seen(dir=dir, run=run, answers=answers.get(run.spec.cluster.name, {})) for dir, run in runs]


def record(seen: Seen, *, details: bool = True) -> dict[str, Any]:
    """One run as JSON. Without details: no evidence, spec or checkpoints, for lists."""
    run, spec = seen.run, seen.run.spec
    result: dict[str, Any] = {
        "id": spec.id,
        "name": spec.name,
        "experiment": spec.experiment,
        "state": run.state,
        "reason": reason(seen),
        "folder": str(seen.dir.path),
        "cluster": spec.cluster.name,
        "user": spec.user,
        "created": spec.created,
        "legs": [_leg(seen, leg) for _, leg in sorted(run.legs.items()) if leg.claimed or leg.end or leg.submission],
        "progress": progress(seen),
    }
    if details:
        result |= {
            "cause": run.closed.cause if run.closed else None,
            "evidence": run.closed.evidence if run.closed else None,
            "next": run.closed.next if run.closed else None,
            "command": list(spec.command),
            "params": dict(spec.params),
            "code": dict(spec.code),
            "checkpoints": checkpoints(seen.dir),
        }
    return result


def reason(seen: Seen) -> str:
    """Why the run is in the state it is in, in words."""
    run = seen.run
    if run.closed:
        return run.closed.cause
    if run.cancel:
        return f"cancelled by {run.cancel.by}, the job at work is being ended"
    last = run.last_leg
    queued = [leg for leg in run.legs.values() if not leg.claimed and not leg.end and leg.submission]
    if run.state is RunState.RUNNING and last and last.claimed:
        status = seen.status(last)
        where = f"leg {last.number} runs on {', '.join(last.claimed.hosts)}"
        if seen.answers is not None and (status is None or not status.state.live) and last.job:
            return f"leg {last.number} is gone ({status.state if status else 'unknown to the scheduler'}); the next leg or `onward tend` finds out why"
        return f"{where}, asked to stop ({last.asked.why})" if last.asked else where
    if queued:
        leg = max(queued, key=lambda item: item.number)
        status = seen.status(leg)
        if status is None:
            known = (
                "the scheduler did not answer" if seen.answers is None else "the scheduler does not know its job: `onward tend` mends that"
            )
            return f"leg {leg.number} was submitted; {known}"
        return f"leg {leg.number} is {status.state}" + (f": {status.reason}" if status.reason else "")
    return "no leg is queued: `onward tend` mends that"


def progress(seen: Seen) -> dict[str, Any]:
    """The newest step, of how many, how fast, and when it would be done if nothing waited (unix seconds)."""
    told = Progress()
    total = None
    for number in sorted(seen.run.legs, reverse=True):
        leg = seen.run.legs[number]
        if not leg.claimed:
            continue
        told = leg_progress(seen.dir.spool, number)
        total = total or told.total
        if told.last_step is not None:
            break
    rate = told.steps_per_second
    eta = None
    if rate and total and told.last_step is not None and told.last_time is not None and not seen.run.closed:
        eta = told.last_time + max(total - 1 - told.last_step, 0) / rate
    return {"step": told.last_step, "total": total, "steps_per_second": rate, "eta": eta, "metrics": told.last}


def checkpoints(dir: RunDir, *, verify: bool = False) -> list[dict[str, Any]]:
    """The published ones. `state`: published (sizes match), verified (every byte was read), or damaged and why."""
    found = []
    for name in names(dir.checkpoints):
        folder = dir.checkpoints / str(name)
        entry: dict[str, Any] = {"step": name.step, "leg": name.leg, "bytes": None, "state": "published", "folder": str(folder)}
        try:
            manifest = verify_checkpoint(folder) if verify else read_manifest(folder)
            check_sizes(folder, manifest)
            entry |= {"bytes": manifest.bytes, "created": manifest.created, "metrics": dict(manifest.metrics)}
            entry["state"] = "verified" if verify else "published"
        except CheckpointDamaged as error:
            entry |= {"state": "damaged", "problem": str(error)}
        found.append(entry)
    return found


def _leg(seen: Seen, leg: Leg) -> dict[str, Any]:
    status = seen.status(leg)
    claimed, submission = leg.claimed, leg.submission
    steps = _steps(seen, leg)
    return {
        "number": leg.number,
        "job": leg.job,
        "cluster": seen.run.spec.cluster.name,
        "state": _leg_state(leg, status),
        "end": leg.end,
        "reason": leg.reason or (status.reason if status else ""),
        "submitted": (status.submitted if status else None) or (submission.at if submission else None),
        "started": claimed.at if claimed else None,
        "ended": leg.ended if leg.end else None,
        "first_step": steps[0],
        "last_step": steps[1],
        "resumed_step": leg.restored.step if leg.restored else None,
        "fell_back": leg.restored.fell_back if leg.restored else [],
        "nodes": claimed.hosts if claimed else list(status.nodes) if status else [],
        "gpus": claimed.gpus if claimed else [],
        "mem": submission.mem if submission else None,
        "warnings": leg.warnings + [f"checkpoint of step {m.step} was not stored: {m.reason}" for m in leg.missed],
    }


def _leg_state(leg: Leg, status: JobStatus | None) -> str:
    if leg.end:
        own = leg.own is not None and leg.end is LegEnd.TIME_LIMIT
        return JobState.FINISHED if own else _ENDED_AS[leg.end]
    if status:
        return status.state
    return JobState.RUNNING if leg.claimed else JobState.QUEUED


def _steps(seen: Seen, leg: Leg) -> tuple[int | None, int | None]:
    if leg.own:
        return leg.own.first_step, leg.own.last_step
    if not leg.claimed:
        return None, None
    return first_step(seen.dir.spool, leg.number), leg_progress(seen.dir.spool, leg.number).last_step
