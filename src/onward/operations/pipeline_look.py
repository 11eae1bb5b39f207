"""Look at a pipeline: how it stands and why, as plain data for CLI, API and page. Only reads."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from onward.model.advance import Facts, MemberState, blocked_by, state_of
from onward.model.pipeline import Plan, Stage
from onward.model.run import RunState
from onward.model.task import TaskState, tasks_of
from onward.operations.inspect import look, progress, reason
from onward.operations.wiring import Desk
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline_layout import PipelineDir
from onward.rundir.tasks import standings
from onward.supervisor.advance import gather, read_plan

_MOST_NAMED = 50  # failed tasks


def line(dir: PipelineDir) -> dict[str, Any]:
    """One pipeline in a list."""
    plan, facts = _read(dir)
    return _head(dir, plan, facts)


def record(desk: Desk, dir: PipelineDir) -> dict[str, Any]:
    """Everything there is to say of one."""
    plan, facts = _read(dir)
    tasks = tasks_of(plan, facts.checkpoints)
    failed = {id: standing for id, standing in standings(dir, plan, tasks).items() if standing.state is TaskState.FAILED}
    return {
        **_head(dir, plan, facts),
        "stages": [_stage(desk, dir, plan, stage, facts) for stage in plan.stages],
        "checkpoints": {name: [one.step for one in seen] for name, seen in facts.checkpoints.items()},
        "failed_tasks": [
            {"id": id, "reason": standing.reason, "evidence": standing.evidence, "hint": standing.hint}
            for id, standing in list(failed.items())[:_MOST_NAMED]
        ],
        "workers": [_worker(run) for run in dir.workers() if run.is_run()],
    }


def _read(dir: PipelineDir) -> tuple[Plan, Facts]:
    plan = read_plan(dir)
    return plan, gather(dir, plan, note=False)


def _head(dir: PipelineDir, plan: Plan, facts: Facts) -> dict[str, Any]:
    over = json.loads(dir.over.read_bytes()) if dir.over.exists() else None
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
        "stages_done": sum(state is MemberState.FINISHED for state in states),
        "stages_all": len(states),
        "tasks": {str(state): counted[str(state)] for state in TaskState},
        "workers_live": sum(crew.queued + crew.running for crew in facts.crews.values()),
    }


def _stage(desk: Desk, dir: PipelineDir, plan: Plan, stage: Stage, facts: Facts) -> dict[str, Any]:
    state = state_of(stage, facts)
    told: dict[str, Any] = {
        "name": stage.name,
        "label": stage.label,
        "kind": str(stage.kind),
        "needs": list(stage.needs),
        "state": str(state),
    }
    if stage.done_by:
        return {
            **told,
            "run": None,
            "why": f"unchanged: {Path(stage.done_by).name} did it",
            "evidence": "",
            "skipped": True,
            "progress": None,
        }
    run = dir.member(stage.name)
    id = read_spec(run).id
    if state is MemberState.HELD:
        return {**told, "run": id, "why": _waits_for(plan, stage, facts), "evidence": "", "skipped": False, "progress": None}
    seen = look(desk, run)
    evidence = seen.run.closed.evidence if seen.run.closed else ""
    return {**told, "run": id, "why": reason(seen), "evidence": evidence, "skipped": False, "progress": progress(seen)}


def _waits_for(plan: Plan, stage: Stage, facts: Facts) -> str:
    if blocking := blocked_by(plan, stage, facts):
        return f"never begins: {blocking} ended {state_of(plan.stage(blocking), facts)}"
    missing = [name for name in stage.needs if state_of(plan.stage(name), facts) is not MemberState.FINISHED]
    return f"waits for {', '.join(missing)}" if missing else "is about to be queued"


def _worker(run: RunDir) -> dict[str, Any]:
    spec = read_spec(run)
    done = json.loads(run.done.read_bytes()) if run.done.exists() else None
    return {
        "number": spec.member.worker if spec.member else None,
        "pool": spec.member.stage if spec.member else "",
        "run": spec.id,
        "state": done["state"] if done else "live",
        "cause": done["cause"] if done else "",
    }
