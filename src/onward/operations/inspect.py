"""What a run looks like from outside: the record that `runs`, `show` and everything that reads JSON gets. Schema 1."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from onward.checkpoints.find import names
from onward.checkpoints.manifest import check_sizes, read_manifest
from onward.checkpoints.manifest import verify as verify_checkpoint
from onward.errors import CheckpointDamaged, OnwardError, StorageError
from onward.model.job import JobId, JobState, JobStatus
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.operations.wiring import Desk
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.rundir.spool import Progress, first_step, leg_progress
from onward.schedulers.base import why_of

SCHEMA = 1

_WAITING = (JobState.QUEUED, JobState.HELD)

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


_ASKED = {
    "deadline": "its time limit is near",
    "request": "someone asked it to",
    "signal": "the scheduler is ending its job",
    "warning": "the scheduler warned that its job will end",
    "storage": "its checkpoints can no longer be stored",
    "deleted": "its job was deleted",
}

Answers = Mapping[JobId, JobStatus]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run with what the scheduler says of its live jobs. `answers` is None where it did not say."""

    dir: RunDir
    run: Run
    answers: Answers | None

    def status(self, leg: Leg) -> JobStatus | None:
        return status_of(leg, self.answers or {})


def status_of(leg: Leg, answers: Answers) -> JobStatus | None:
    """What is said of the leg's own job. One of another name has only been given its id, after the scheduler forgot ours."""
    status = answers.get(JobId(leg.job)) if leg.job else None
    return None if status and leg.submissions and status.name not in leg.submissions else status


def read_folder(dir: RunDir) -> Run:
    """The run of a folder, or a StorageError that says which folder is broken."""
    try:
        return read_run(dir)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        words = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise StorageError(f"{dir.path} cannot be read as a run: {words}", hint=f"look at {dir.spec} and {dir.journals}") from error


def is_ours(dir: RunDir) -> bool:
    """A scheduler tells us of our own jobs only, and what we queue runs as us: other people's runs are theirs to tend."""
    return dir.path.stat().st_uid == os.getuid()


def look(desk: Desk, dir: RunDir) -> Seen:
    return _with_reasons(desk, _ask(desk, [(dir, read_folder(dir))])[0])


def _with_reasons(desk: Desk, seen: Seen) -> Seen:
    """Why the legs of a run that waits are in the queue, where its scheduler says so only when it is asked."""
    answers = seen.answers or {}
    queued = {status.id: status for leg in seen.run.legs.values() if not leg.claimed and (status := seen.status(leg))}
    silent = [job for job, status in queued.items() if status.state in _WAITING and not status.reason]
    if not silent or seen.run.state is RunState.RUNNING:
        return seen
    try:
        reasons = why_of(desk.scheduler(seen.run.spec.cluster), silent)
    except OnwardError:
        return seen
    return replace(seen, answers={**answers, **{job: replace(answers[job], reason=reasons[job]) for job in silent if job in reasons}})


def look_at_all(desk: Desk, dirs: Iterable[RunDir]) -> tuple[list[Seen], list[StorageError]]:
    """Every run that can be read, and what is wrong with the others."""
    runs: list[tuple[RunDir, Run]] = []
    broken: list[StorageError] = []
    for dir in dirs:
        try:
            runs.append((dir, read_folder(dir)))
        except StorageError as error:
            broken.append(error)
    return _ask(desk, runs), broken


def _ask(desk: Desk, runs: list[tuple[RunDir, Run]]) -> list[Seen]:
    """Ask each cluster once for all live jobs of these runs. A cluster that does not answer costs only its column."""
    ours = [run for dir, run in runs if is_ours(dir) and not run.closed]
    answers: dict[str, Answers | None] = {}
    for name, cluster in {run.spec.cluster.name: run.spec.cluster for run in ours}.items():
        jobs = [JobId(leg.job) for run in ours if run.spec.cluster.name == name for leg in run.legs.values() if leg.job and not leg.end]
        try:
            answers[name] = desk.scheduler(cluster).status(jobs) if jobs else {}
        except OnwardError:
            answers[name] = None
    return [Seen(dir=dir, run=run, answers=answers.get(run.spec.cluster.name, {}) if is_ours(dir) else None) for dir, run in runs]


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
        return f"cancelled by {run.cancel.by}; its jobs are still to be ended, by onward cancel again or by `onward tend`"
    last = run.last_leg
    if run.state is RunState.RUNNING and last and last.claimed:
        return _at_work(seen, last)
    queued = [leg for leg in run.legs.values() if not leg.claimed and not leg.end and leg.submission]
    if queued:
        return _in_the_queue(seen, max(queued, key=lambda leg: leg.number))
    refused = [s.refused for leg in run.legs.values() if not leg.claimed for s in leg.submissions.values() if s.refused]
    if refused:
        return f"the scheduler refused the next leg: {refused[-1]}; `onward tend` tries again, onward cancel and onward resume change it"
    return "no leg is queued: `onward tend` mends that"


def _at_work(seen: Seen, leg: Leg) -> str:
    assert leg.claimed is not None
    status = seen.status(leg)
    if seen.answers is not None and (status is None or not status.state.live):
        known = plain(status.state) if status else "unknown to the scheduler"
        return f"leg {leg.number} is gone ({known}); the next leg or `onward tend` finds out why"
    asked = f", asked to save and stop: {_ASKED.get(leg.asked.why, leg.asked.why)}" if leg.asked else ""
    return f"leg {leg.number} runs on {', '.join(leg.claimed.hosts)}{asked}"


def _in_the_queue(seen: Seen, leg: Leg) -> str:
    if leg.job is None:
        return f"whether the job for leg {leg.number} was accepted is not known yet: `onward tend` looks it up"
    status = seen.status(leg)
    if status is None:
        unknown = "the scheduler does not know its job: `onward tend` mends that"
        unheard = "the scheduler did not answer" if is_ours(seen.dir) else f"its job is {seen.run.spec.user}'s"
        return f"leg {leg.number} was submitted; {unheard if seen.answers is None else unknown}"
    if status.state is JobState.RUNNING:
        return f"leg {leg.number} is starting"
    if not status.state.live:
        return f"leg {leg.number} ended before it began ({plain(status.state)}): `onward tend` looks into it"
    return f"leg {leg.number} is {plain(status.state)}" + (f": {status.reason}" if status.reason else "")


def plain(state: str) -> str:
    """A state or an end, for people: `timed_out` is timed out."""
    return state.replace("_", " ")


def progress(seen: Seen) -> dict[str, Any]:
    """The newest step, of how many, how fast, and when it would be done if nothing waited (unix seconds)."""
    told = Progress()
    total = None
    for number in sorted(seen.run.legs, reverse=True):
        leg = seen.run.legs[number]
        if not leg.claimed:
            continue
        told = leg_progress(seen.dir.spool, number)
        total = total or (told.total if isinstance(told.total, int) and told.total > 0 else None)
        if told.last_step is not None:
            break
    rate = told.steps_per_second
    eta = None
    if rate and total and told.last_step is not None and told.last_time is not None and not seen.run.closed:
        eta = told.last_time + max(total - 1 - told.last_step, 0) / rate
    metrics = {str(name): value for name, value in told.last.items() if isinstance(value, int | float)}
    return {"step": told.last_step, "total": total, "steps_per_second": rate, "eta": eta, "metrics": metrics}


def checkpoints(dir: RunDir, *, verify: bool = False) -> list[dict[str, Any]]:
    """The published ones. `state`: published (sizes match), verified (every byte was read), or damaged and why."""
    found = []
    for name in names(dir.checkpoints):
        folder = dir.checkpoints / str(name)
        entry: dict[str, Any] = {"step": name.step, "leg": name.leg, "bytes": None, "state": "published", "folder": str(folder)}
        entry |= {"created": None, "metrics": {}}
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
    needless = seen.run.closed is not None and not claimed and not leg.end
    return {
        "number": leg.number,
        "job": leg.job,
        "cluster": seen.run.spec.cluster.name,
        "state": JobState.CANCELLED if needless else _leg_state(leg, status),
        "end": leg.end,
        "reason": leg.reason or (status.reason if status else "not needed: the run was over before it began" if needless else ""),
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
        "warnings": leg.warnings + _misses(leg),
    }


def _misses(leg: Leg) -> list[str]:
    told = [f"the checkpoint of step {m.step} was not stored: {m.reason}" for m in leg.missed]
    return told if len(told) <= 3 else [*told[:1], f"… and {len(told) - 2} more", told[-1]]


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
