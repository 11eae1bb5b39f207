"""What a run looks like from outside: the record that `runs`, `show` and everything that reads JSON gets. Schema 1."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from onward.checkpoints.manifest import check_sizes, read_manifest
from onward.checkpoints.manifest import verify as verify_checkpoint
from onward.checkpoints.restoring.newest import published_names_of
from onward.errors import CheckpointDamaged, OnwardError, StorageError
from onward.model.analysis.effort import effort, saved_step, work_at_risk
from onward.model.analysis.eta import TrainingPace, estimate_eta
from onward.model.analysis.run_summary import SILENT, trains
from onward.model.analysis.why import NO_ANSWER, JobAnswers, next_action, no_job_since, status_of, why
from onward.model.events import Missed
from onward.model.job import JobState, JobStatus
from onward.model.policy.job_end import job_state
from onward.model.policy.unrecorded_jobs import unrecorded_jobs
from onward.model.quantity import duration_text
from onward.model.run import Leg, Run, RunState
from onward.model.spec import Cluster
from onward.operations.context import OperationsContext
from onward.operations.runs.event_file_step import event_file_step
from onward.operations.runs.unrecorded import full_disk
from onward.operations.runs.written_files import written_record
from onward.rundir.home import copied_folder, home_elsewhere
from onward.rundir.journal import broken_lines, read_run
from onward.rundir.layout import RunDir
from onward.rundir.progress import Progress, first_step, leg_progress, signs_of_life
from onward.schedulers.base import Scheduler, ask_about, priority_of, why_of
from onward.schedulers.slurm.wait_reasons import plain_reason

SCHEMA = 1

_WAITING = (JobState.QUEUED, JobState.HELD)
_MOST_ASKED = 100  # jobs that a scheduler is asked about at once


@dataclass(frozen=True, kw_only=True)
class InspectedRun:
    """A run with what the scheduler says of its live jobs. `answers` is None where it did not say."""

    dir: RunDir
    run: Run
    answers: JobAnswers | None
    at: float  # when it was looked at
    copy_of: Path | None = None  # the folder in which the run lives, if this is a copy
    priority: str = ""  # of the job that waits, where that was asked
    storage: str = ""  # what is wrong with the disk of the run's folder, where that was looked at

    def status(self, leg: Leg) -> JobStatus | None:
        return status_of(leg, self.answers or {})


def read_folder(dir: RunDir) -> Run:
    """The run of a folder, or a StorageError that says which folder is broken."""
    try:
        return read_run(dir)
    except (OSError, ValueError) as error:
        from onward.operations.runs.damaged import spec_damage, what_to_do  # rarely needed

        hint = what_to_do(dir) if spec_damage(dir) else f"check {dir.spec} and {dir.journals}"
        raise StorageError(f"{dir.path} cannot be read as a run: {error}", hint=hint) from error


def is_ours(dir: RunDir) -> bool:
    """A scheduler tells us of our own jobs only, and what we queue runs as us: other people's runs are theirs to tend."""
    return os.lstat(dir.path).st_uid == os.getuid()


def inspect_run(context: OperationsContext, dir: RunDir) -> InspectedRun:
    seen = replace(_ask(context, [(dir, read_folder(dir))])[0], copy_of=home_elsewhere(dir))
    seen = replace(seen, storage="" if seen.run.closed else full_disk(dir.root))
    if seen.answers is None:
        return seen
    return replace(seen, answers=with_reasons(context.scheduler(seen.run.spec.cluster), [seen.run], seen.answers))


def with_priority(context: OperationsContext, seen: InspectedRun) -> InspectedRun:
    """What decides when the job that waits has its turn: for a person's own question, since it costs calls."""
    if seen.run.state is RunState.RUNNING:  # the next leg's turn is not decided yet
        return seen
    waiting = (status for leg in seen.run.legs.values() if not leg.claimed and (status := seen.status(leg)))
    queued = next((status for status in waiting if status.state is JobState.QUEUED), None)
    return replace(seen, priority=priority_of(context.scheduler(seen.run.spec.cluster), queued.id)) if queued else seen


def with_reasons(scheduler: Scheduler, runs: Iterable[Run], answers: JobAnswers) -> JobAnswers:
    """Why the legs of runs that wait are in the queue, where their scheduler says so only when it is asked."""
    waiting = [leg for run in runs if run.state is not RunState.RUNNING for leg in run.legs.values() if not leg.claimed]
    queued = [status for leg in waiting if (status := status_of(leg, answers))]
    silent = [status.id for status in queued if status.state in _WAITING and not status.reason][:_MOST_ASKED]
    if not silent:
        return answers
    try:
        reasons = why_of(scheduler, silent)
    except OnwardError:
        return answers
    return {**answers, **{job: replace(answers[job], reason=reasons[job]) for job in silent if job in reasons}}


def in_plain_words(cluster: Cluster, native: str) -> str:
    """A scheduler's reason for people, with its own word behind it."""
    if cluster.scheduler != "slurm" or not native:
        return native
    said = plain_reason(native)
    return said if native in said else f"{said} ({native})"


def inspect_runs(context: OperationsContext, dirs: Iterable[RunDir]) -> tuple[list[InspectedRun], list[StorageError]]:
    """Every run that can be read, and what is wrong with the others."""
    runs: list[tuple[RunDir, Run]] = []
    broken: list[StorageError] = []
    for dir in dirs:
        try:
            runs.append((dir, read_folder(dir)))
        except StorageError as error:
            broken.append(error)
    return _ask(context, runs), broken


def _ask(context: OperationsContext, runs: list[tuple[RunDir, Run]]) -> list[InspectedRun]:
    """Ask each cluster once for all live jobs of these runs. A cluster that does not answer costs only its column."""
    ours = [run for dir, run in runs if is_ours(dir) and not run.closed]
    answers: dict[str, JobAnswers | None] = {}
    for name, cluster in {run.spec.cluster.name: run.spec.cluster for run in ours}.items():
        try:
            answers[name] = ask_about(context.scheduler(cluster), [run for run in ours if run.spec.cluster.name == name])
        except OnwardError:
            answers[name] = None
    now = context.clock.now()
    return [
        InspectedRun(
            dir=dir,
            run=run,
            answers=answers.get(run.spec.cluster.name, {}) if is_ours(dir) else None,
            at=now,
            copy_of=None if run.closed else home_elsewhere(dir),  # of a run that is over, a list tells the end alone
        )
        for dir, run in runs
    ]


def run_record(seen: InspectedRun, *, details: bool = True) -> dict[str, Any]:
    """One run as JSON. Without details: no evidence, spec or checkpoints, for lists."""
    run, spec = seen.run, seen.run.spec
    result: dict[str, Any] = {
        "id": spec.id,
        "name": spec.name,
        "experiment": spec.experiment,
        "state": run.state,
        "reason": reason(seen),
        "no_job_since": _no_job_since(seen),
        "silent_since": silent_since(seen),
        "copy_of": str(seen.copy_of) if seen.copy_of else None,
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
            "next": copied_folder(seen.dir, seen.copy_of).hint if seen.copy_of else next_action(run) or None,
            "priority": seen.priority or None,
            "command": list(spec.command),
            "params": dict(spec.params),
            "code": dict(spec.code),
            "checkpoints": checkpoints(seen.dir),
            "own_files": own_files(run),
            "written": written_record(seen.dir),
            "broken_lines": broken_lines(seen.dir),
            **time_account(run, current_pace(result["progress"]), now=seen.at),
        }
    return result


def own_files(run: Run) -> dict[str, Any] | None:
    """What the training was last seen to write by itself."""
    newest = max((saved for leg in run.legs.values() for saved in leg.self_saved), key=lambda saved: saved.written, default=None)
    return {"leg": newest.leg, "files": newest.files, "written": newest.written} if newest else None


def _no_job_since(seen: InspectedRun) -> float | None:
    since = no_job_since(seen.run, seen.answers)
    return since if since is not None and not seen.dir.held.exists() and not seen.copy_of else None


def silent_since(seen: InspectedRun) -> float | None:
    """Since when nothing of the leg that trains has reached the run's folder, where that is unusual."""
    leg = seen.run.last_leg
    if leg is None or leg.claimed is None or not trains(seen.run) or seen.copy_of:
        return None
    status = seen.status(leg)
    if (seen.answers is not None and status is None) or (status and (status.state is not JobState.RUNNING or status.paused)):
        return None
    last = max(signs_of_life(seen.dir, leg.number), default=leg.claimed.at)
    return last if seen.at - last > SILENT else None


def time_account(run: Run, pace: TrainingPace, *, now: float) -> dict[str, Any]:
    """What became of the jobs' time, what is at risk, and when it will be done: from the events alone."""
    spent, at_risk, expected = effort(run, now=now), work_at_risk(run, now=now, last_step=pace.step), estimate_eta(run, pace, now=now)
    return {
        "effort": {**asdict(spent), "goodput": spent.goodput},
        "risk": asdict(at_risk) if at_risk else None,
        "finish": asdict(expected) if expected else None,
    }


def current_pace(record: Mapping[str, Any]) -> TrainingPace:
    """Of what `progress` says."""
    return TrainingPace(step=record["step"], total=record["total"], rate=record["steps_per_second"], at=record.get("at"))


def folder_pace(dir: RunDir, run: Run) -> TrainingPace:
    """From the ends of its spools, whatever its scheduler says."""
    return current_pace(progress(InspectedRun(dir=dir, run=run, answers=None, at=0.0)))


def reason(seen: InspectedRun) -> str:
    """Why the run is in the state it is in, in words."""
    if seen.copy_of and not seen.run.closed:
        return f"this folder is a copy of {seen.copy_of}, the run's home"
    unheard = NO_ANSWER if is_ours(seen.dir) else f"its job belongs to {seen.run.spec.user}"
    said = why(seen.run, seen.answers, unheard=unheard, words=partial(in_plain_words, seen.run.spec.cluster))
    if seen.storage:
        return f"{said}; {seen.storage}: nothing about the run can be recorded"
    since = silent_since(seen)
    for leg, entry in unrecorded_jobs(seen.run) if since is None else ():
        said += f"; job {entry.job} of leg {leg.number} could not be recorded: is the disk of {seen.dir.root} full?"
    if since is None:
        return said
    return f"{said}; no news from the leg for {duration_text(seen.at - since)}: the storage of the run's folder may hang there, or be full"


def progress(seen: InspectedRun) -> dict[str, Any]:
    """The newest step, of how many, how fast, and when it would be done if nothing waited (unix seconds).

    One truth of what was logged, published and written into event files: the furthest of the newest leg that tells.
    """
    progress = Progress()
    total = step = None
    for number in sorted(seen.run.legs, reverse=True):
        leg = seen.run.legs[number]
        if not leg.claimed:
            continue
        progress = leg_progress(seen.dir.spool, number)
        total = total or (progress.total if isinstance(progress.total, int) and progress.total > 0 else None)
        step = max((known for known in (progress.last_step, saved_step(leg)) if known is not None), default=None)
        if step is not None:
            break
    if progress.last_step is None:
        step = max((known for known in (step, event_file_step(seen.dir)) if known is not None), default=None)
    rate = progress.steps_per_second
    eta = None
    if rate and total and progress.last_step is not None and progress.last_time is not None and not seen.run.closed:
        eta = progress.last_time + max(total - 1 - progress.last_step, 0) / rate
    metrics = {str(name): value for name, value in progress.last.items() if isinstance(value, int | float)}
    return {"step": step, "total": total, "steps_per_second": rate, "at": progress.last_time, "eta": eta, "metrics": metrics}


def checkpoints(dir: RunDir, *, verify: bool = False) -> list[dict[str, Any]]:
    """The published ones. `state`: published (sizes match), verified (every byte was read), or damaged and why."""
    found = []
    for name in published_names_of(dir.checkpoints):
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


def _leg(seen: InspectedRun, leg: Leg) -> dict[str, Any]:
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
        "deadline": claimed.deadline if claimed else None,
        "ended": leg.ended if leg.end else None,
        "first_step": steps[0],
        "last_step": steps[1],
        "resumed_step": leg.restored.step if leg.restored else None,
        "fell_back": leg.restored.fell_back if leg.restored else [],
        "nodes": claimed.hosts if claimed else list(status.nodes) if status else [],
        "gpus": claimed.gpus if claimed else [],
        "mem": submission.mem if submission else None,
        "warnings": leg.warnings + _misses(seen.run, seen.dir, leg),
    }


def _misses(run: Run, dir: RunDir, leg: Leg) -> list[str]:
    newest = max((p.step for each in run.legs.values() for p in each.published), default=-1)
    stored = {p.step for p in leg.published}  # since then, by this leg or a later one
    missed = [m for m in leg.missed if m.step not in stored]
    lines = [f"the checkpoint of step {m.step} was not stored: {m.reason}{_kept(m, dir, leg, newest)}" for m in missed]
    return lines if len(lines) <= 3 else [*lines[:1], f"… and {len(lines) - 2} more", lines[-1]]


def _kept(missed: Missed, dir: RunDir, leg: Leg, newest: int) -> str:
    """Where it lies, and how to publish it from there, as long as nothing newer is published."""
    if not missed.kept or missed.step <= newest or not leg.claimed:
        return ""
    node = leg.claimed.hosts[0]
    by_hand = shlex.join(["python3", str(dir.supervisor), "salvage", str(dir.path)])
    return f"; it is in {missed.kept} on {node}. The next leg on {node} publishes it, or run there: {by_hand}"


def _leg_state(leg: Leg, status: JobStatus | None) -> str:
    return status.state if status and not leg.end else job_state(leg)


def _steps(seen: InspectedRun, leg: Leg) -> tuple[int | None, int | None]:
    if leg.own:
        return leg.own.first_step, leg.own.last_step
    if not leg.claimed:
        return None, None
    return first_step(seen.dir.spool, leg.number), leg_progress(seen.dir.spool, leg.number).last_step
