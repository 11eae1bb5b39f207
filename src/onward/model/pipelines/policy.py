"""Policy: what a pipeline needs now, from its plan and what is known of its runs and tasks. Pure: asking twice gives the same twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from onward.model.pipelines.plan import PipelinePlan, Stage
from onward.model.pipelines.task import PublishedCheckpoint, Task, TaskState, tasks_of
from onward.model.run import RunState

MAX_WORKER_FAILURES = 3  # workers of a pool that failed in a row, none of them with a task done


class StageState(StrEnum):
    """How far the run of a stage is. Unknown is never finished."""

    HELD = "held"  # made, and no job asked for
    LIVE = "live"  # submitted, running or waiting
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self in (StageState.FINISHED, StageState.FAILED, StageState.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class PoolWorkers:
    """The workers of one pool."""

    queued: int = 0
    running: int = 0
    failures: int = 0  # in a row, with no task done since
    cause: str = ""  # of the newest failure


@dataclass(frozen=True, kw_only=True)
class PipelineFacts:
    """What lies there. A stage that is not named is held, a task open, a pool without workers."""

    members: Mapping[str, StageState] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)  # why a member failed, in words
    checkpoints: Mapping[str, tuple[PublishedCheckpoint, ...]] = field(default_factory=dict)
    tasks: Mapping[str, TaskState] = field(default_factory=dict)  # by id
    workers: Mapping[str, PoolWorkers] = field(default_factory=dict)  # by pool
    workers_made: int = 0  # the greatest number that a worker ever got
    cancelled: str = ""  # by whom


@dataclass(frozen=True, kw_only=True)
class SubmitStage:
    """Ask for leg 1 of this stage."""

    stage: str


@dataclass(frozen=True, kw_only=True)
class StartWorker:
    """The number is its identity: two who decide at once decide on the same worker."""

    pool: str
    number: int


@dataclass(frozen=True, kw_only=True)
class ClosePipeline:
    """Nothing more will come: how the pipeline ended, and why."""

    state: RunState
    cause: str


PipelineAction = SubmitStage | StartWorker | ClosePipeline


def decide(plan: PipelinePlan, facts: PipelineFacts) -> tuple[PipelineAction, ...]:
    if facts.cancelled:
        return () if _live(plan, facts) else (ClosePipeline(state=RunState.CANCELLED, cause=f"cancelled by {facts.cancelled}"),)
    queued = [
        SubmitStage(stage=stage.name) for stage in plan.stages if state_of(stage, facts) is StageState.HELD and _ready(plan, stage, facts)
    ]
    tasks = tasks_of(plan, facts.checkpoints)
    started = _workers(plan, facts, tasks)
    if queued or started or not _nothing_left(plan, facts, tasks):
        return (*queued, *started)
    return (_ended(plan, facts, tasks),)


def state_of(stage: Stage, facts: PipelineFacts) -> StageState:
    return StageState.FINISHED if stage.done_by else facts.members.get(stage.name, StageState.HELD)


def blocked_by(plan: PipelinePlan, stage: Stage, facts: PipelineFacts) -> str | None:
    """The stage that ended badly and keeps this one from ever starting, however far up it is."""
    for name in stage.needs:
        needed = plan.stage(name)
        state = state_of(needed, facts)
        if state in (StageState.FAILED, StageState.CANCELLED):
            return name
        if state is StageState.HELD and (above := blocked_by(plan, needed, facts)):
            return above
    return None


# ── what can start ────────────────────────────────────────────────────────────


def _ready(plan: PipelinePlan, stage: Stage, facts: PipelineFacts) -> bool:
    return all(state_of(plan.stage(name), facts) is StageState.FINISHED for name in stage.needs)


def _workers(plan: PipelinePlan, facts: PipelineFacts, tasks: tuple[Task, ...]) -> list[StartWorker]:
    """As many as there is room and work for. Those still queued will take a share each, so they are counted as help that is coming."""
    room = plan.workers.max_running - sum(workers.queued + workers.running for workers in facts.workers.values())
    askable = plan.workers.max_requests - sum(workers.queued for workers in facts.workers.values())
    started: list[StartWorker] = []
    for pool in plan.pools:
        workers = facts.workers.get(pool.name, PoolWorkers())
        if workers.failures >= MAX_WORKER_FAILURES or any(
            state_of(plan.stage(name), facts) is not StageState.FINISHED for name in pool.needs
        ):
            continue
        open_ones = len(_in(plan, pool.name, tasks, facts, TaskState.OPEN))
        wanted = math.ceil(open_ones / plan.workers.tasks_each) - workers.queued
        for _ in range(max(0, min(wanted, room - len(started), askable - len(started)))):
            started.append(StartWorker(pool=pool.name, number=facts.workers_made + len(started) + 1))
    return started


def _in(plan: PipelinePlan, pool: str, tasks: tuple[Task, ...], facts: PipelineFacts, *states: TaskState) -> list[Task]:
    names = {benchmark.name for benchmark in plan.benchmarks if benchmark.pool == pool}
    return [task for task in tasks if task.benchmark in names and facts.tasks.get(task.id, TaskState.OPEN) in states]


# ── whether it is over ────────────────────────────────────────────────────────


def _live(plan: PipelinePlan, facts: PipelineFacts) -> bool:
    going = any(state_of(stage, facts) in (StageState.LIVE, StageState.UNKNOWN) for stage in plan.stages)
    return going or any(workers.queued + workers.running for workers in facts.workers.values())


def _nothing_left(plan: PipelinePlan, facts: PipelineFacts, tasks: tuple[Task, ...]) -> bool:
    for stage in plan.stages:
        if not state_of(stage, facts).over and not (state_of(stage, facts) is StageState.HELD and blocked_by(plan, stage, facts)):
            return False
    for pool in plan.pools:
        workers = facts.workers.get(pool.name, PoolWorkers())
        unfinished = _in(plan, pool.name, tasks, facts, TaskState.OPEN, TaskState.CLAIMED)
        if unfinished and not (_hopeless(plan, pool.name, facts) and not workers.queued + workers.running):
            return False
    return True


def _hopeless(plan: PipelinePlan, pool: str, facts: PipelineFacts) -> bool:
    """No worker of this pool will be started any more: they fail, or what they need has."""
    needs = next(one.needs for one in plan.pools if one.name == pool)
    bad = (StageState.FAILED, StageState.CANCELLED)
    broken = any(state_of(plan.stage(name), facts) in bad or blocked_by(plan, plan.stage(name), facts) for name in needs)
    return broken or facts.workers.get(pool, PoolWorkers()).failures >= MAX_WORKER_FAILURES


def _ended(plan: PipelinePlan, facts: PipelineFacts, tasks: tuple[Task, ...]) -> ClosePipeline:
    for stage in plan.stages:
        if state_of(stage, facts) in (StageState.FAILED, StageState.CANCELLED):
            why = facts.causes.get(stage.name) or state_of(stage, facts).value
            return ClosePipeline(state=RunState.FAILED, cause=f"stage {stage.name}: {why}")
    for pool in plan.pools:
        workers = facts.workers.get(pool.name, PoolWorkers())
        left = _in(plan, pool.name, tasks, facts, TaskState.OPEN, TaskState.CLAIMED)
        if left:
            return ClosePipeline(
                state=RunState.FAILED,
                cause=f"{len(left)} of {len(tasks)} tasks are not done: {workers.failures} workers failed in a row: {workers.cause}",
            )
    failed = [task for task in tasks if facts.tasks.get(task.id) is TaskState.FAILED]
    if failed:
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        named = ", ".join(task.id for task in failed[:3])
        return ClosePipeline(state=RunState.FAILED, cause=f"{len(failed)} of {len(tasks)} tasks failed: {named}{more}")
    return ClosePipeline(state=RunState.FINISHED, cause="all stages and tasks are done" if tasks else "all stages are done")
