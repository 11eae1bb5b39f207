"""Look at a pipeline: how it stands and why, as plain data for CLI, API and page. Only reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onward.errors import StorageError
from onward.model.pipelines.plan import PipelinePlan, Stage, StageKind
from onward.model.pipelines.policy import PipelineFacts, StageState, blocked_by, state_of
from onward.model.pipelines.task import Task, TaskState, tasks_of
from onward.model.plain_data import value_to_json
from onward.model.run import RunState
from onward.operations.context import OperationsContext
from onward.operations.pipelines.upload import upload_record
from onward.operations.runs.record import InspectedRun, inspect_run, progress, read_folder, reason
from onward.pipelines.advance import gather_facts, read_plan
from onward.rundir.claim import claimed_legs
from onward.rundir.files.no_links import read_beneath
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import task_standings
from onward.rundir.root.presence import Presence, presence_of
from onward.rundir.run_end import end_of

_MOST_NAMED = 50  # failed tasks

RunReason = Callable[[str], str | None]  # why a run stands as it does, by its id


def pipeline_line(dir: PipelineDir) -> dict[str, Any]:
    """One pipeline in a list. A StorageError where it is damaged: that keeps no other from being listed."""
    with _readable(dir):
        plan, facts = _read(dir)
        return _head(dir, plan, facts)


def pipeline_lines(dirs: Iterable[PipelineDir]) -> tuple[list[dict[str, Any]], list[StorageError]]:
    """Of all that can be read, and what is wrong with the others."""
    lines, damaged = [], []
    for dir in dirs:
        try:
            lines.append(pipeline_line(dir))
        except StorageError as error:
            damaged.append(error)
    return lines, damaged


def pipeline_record(context: OperationsContext, dir: PipelineDir, *, known: RunReason | None = None) -> dict[str, Any]:
    """Everything there is to say of one. `known` tells why runs wait; without it their scheduler is asked."""
    with _readable(dir):
        return _record(context, dir, known)


def _record(context: OperationsContext, dir: PipelineDir, known: RunReason | None) -> dict[str, Any]:
    plan, facts = _read(dir)
    tasks = {task.id: task for task in tasks_of(plan, facts.checkpoints)}
    failed = {id: standing for id, standing in task_standings(dir, plan, tasks.values()).items() if standing.state is TaskState.FAILED}
    return {
        **_head(dir, plan, facts),
        "stages": [_stage(context, dir, plan, stage, facts, known) for stage in plan.stages],
        "benchmarks": [{"name": benchmark.name, "of": list(benchmark.of)} for benchmark in plan.benchmarks],
        "checkpoints": {name: [one.step for one in seen] for name, seen in facts.checkpoints.items()},
        "failed_tasks": [
            {**_task(tasks[id]), "reason": standing.reason, "evidence": standing.evidence, "hint": standing.hint}
            for id, standing in list(failed.items())[:_MOST_NAMED]
        ],
        "workers": [_worker(run) for run in dir.workers() if run.is_run()],
        "upload": upload_record(dir, plan),
    }


@contextmanager
def _readable(dir: PipelineDir) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{dir.path} cannot be read as a pipeline: {error}", hint="was something in or next to it changed?") from error


def _read(dir: PipelineDir) -> tuple[PipelinePlan, PipelineFacts]:
    plan = read_plan(dir)
    return plan, gather_facts(dir, plan, note=False)


def _head(dir: PipelineDir, plan: PipelinePlan, facts: PipelineFacts) -> dict[str, Any]:
    over = json.loads(read_beneath(dir.path, dir.over)) if dir.over.exists() else None
    counted = Counter(str(facts.tasks.get(task.id, TaskState.OPEN)) for task in tasks_of(plan, facts.checkpoints))
    states = [state_of(stage, facts) for stage in plan.stages]
    return {
        "schema": 1,
        "name": plan.name,
        "folder": str(dir.path),
        "experiment": plan.experiment,
        "cluster": plan.cluster,
        "created": plan.created,
        "state": over["state"] if over else str(RunState.RUNNING),
        "cause": over["cause"] if over else "",
        "ended": over["at"] if over else None,
        "stages_done": sum(state is StageState.FINISHED for state in states),
        "stages_all": len(states),
        "tasks": {str(state): counted[str(state)] for state in TaskState},
        "workers_live": sum(workers.queued + workers.running for workers in facts.workers.values()),
    }


def _stage(
    context: OperationsContext, dir: PipelineDir, plan: PipelinePlan, stage: Stage, facts: PipelineFacts, known: RunReason | None
) -> dict[str, Any]:
    state = state_of(stage, facts)
    record: dict[str, Any] = {
        "name": stage.name,
        "label": stage.label,
        "kind": str(stage.kind),
        "needs": list(stage.needs),
        "state": str(state),
        "run_state": None,
        "run": None,
        "why": "",
        "evidence": "",
        "skipped": stage.done_by is not None,
        "done_by": None,
        "blocked": False,
        "progress": None,
    }
    if stage.done_by:
        by = Path(stage.done_by)
        why = "it is already built" if stage.kind is StageKind.ENVIRONMENT else f"{by.name} did it"
        return {**record, "why": f"unchanged: {why}", "done_by": _id(RunDir(by))}
    run = dir.member(stage.name)
    if (id := _id(run)) is None:
        gone = presence_of(run, mark=dir.plan) is Presence.GONE
        return {**record, "why": f"its folder {run.path.name} {'is gone' if gone else 'cannot be read now'}"}
    record["run"] = id
    if state is StageState.HELD:
        return {**record, "why": _waits_for(plan, stage, facts), "blocked": blocked_by(plan, stage, facts) is not None}
    seen = inspect_run(context, run) if known is None else InspectedRun(dir=run, run=read_folder(run), answers=None, at=context.clock.now())
    closed = seen.run.closed
    return {
        **record,
        "run_state": str(state if state.over else seen.run.state),
        "why": (known(record["run"]) if known and not state.over else None) or reason(seen),
        "evidence": closed.evidence if closed else "",
        "progress": None if state.over else progress(seen),
    }


def _id(run: RunDir) -> str | None:
    """None where it was taken away since."""
    return read_spec(run).id if run.is_run() else None


def _task(task: Task) -> dict[str, Any]:
    return {"id": task.id, **value_to_json(task)}


def _waits_for(plan: PipelinePlan, stage: Stage, facts: PipelineFacts) -> str:
    if blocking := blocked_by(plan, stage, facts):
        return f"will not start: {blocking} ended {state_of(plan.stage(blocking), facts)}"
    missing = [name for name in stage.needs if state_of(plan.stage(name), facts) is not StageState.FINISHED]
    return f"waits for {', '.join(missing)}" if missing else "is about to be queued"


def _worker(run: RunDir) -> dict[str, Any]:
    spec = read_spec(run)
    done = end_of(run)
    return {
        "number": spec.member.worker if spec.member else None,
        "pool": spec.member.stage if spec.member else "",
        "run": spec.id,
        "state": done["state"] if done else "running" if claimed_legs(run) else "queued",
        "cause": done["cause"] if done else "",
    }
