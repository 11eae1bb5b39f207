"""Policy: what a pipeline needs now, from its plan and what is known of its runs and tasks. Pure: asking twice gives the same twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from onward.model.pipeline import Plan, Stage
from onward.model.run import RunState
from onward.model.task import Seen, Task, TaskState, tasks_of

FAILURES_BORNE = 3  # workers of a pool that failed in a row, none of them with a task done


class MemberState(StrEnum):
    """How far the run of a stage is. Unknown is never finished."""

    HELD = "held"  # made, and no job asked for
    LIVE = "live"  # submitted, running or waiting
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self in (MemberState.FINISHED, MemberState.FAILED, MemberState.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class Crew:
    """The workers of one pool."""

    queued: int = 0
    running: int = 0
    failures: int = 0  # in a row, with no task done since
    cause: str = ""  # of the newest failure


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What lies there. A stage that is not named is held, a task open, a pool without workers."""

    members: Mapping[str, MemberState] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)  # why a member failed, in words
    checkpoints: Mapping[str, tuple[Seen, ...]] = field(default_factory=dict)
    tasks: Mapping[str, TaskState] = field(default_factory=dict)  # by id
    crews: Mapping[str, Crew] = field(default_factory=dict)  # by pool
    workers_made: int = 0  # the greatest number that a worker ever got
    cancelled: str = ""  # by whom


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Ask for leg 1 of this stage."""

    stage: str


@dataclass(frozen=True, kw_only=True)
class StartWorker:
    """The number is its identity: two who decide at once decide on the same worker."""

    pool: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Over:
    """Nothing more will come: how the pipeline ended, and why."""

    state: RunState
    cause: str


Action = Queue | StartWorker | Over


def decide(plan: Plan, facts: Facts) -> tuple[Action, ...]:
    if facts.cancelled:
        return () if _live(plan, facts) else (Over(state=RunState.CANCELLED, cause=f"cancelled by {facts.cancelled}"),)
    queued = [Queue(stage=stage.name) for stage in plan.stages if state_of(stage, facts) is MemberState.HELD and _ready(plan, stage, facts)]
    tasks = tasks_of(plan, facts.checkpoints)
    started = _workers(plan, facts, tasks)
    if queued or started or not _nothing_left(plan, facts, tasks):
        return (*queued, *started)
    return (_ended(plan, facts, tasks),)


def state_of(stage: Stage, facts: Facts) -> MemberState:
    return MemberState.FINISHED if stage.done_by else facts.members.get(stage.name, MemberState.HELD)


def blocked_by(plan: Plan, stage: Stage, facts: Facts) -> str | None:
    """The stage that ended badly and keeps this one from ever starting, however far up it is."""
    for name in stage.needs:
        needed = plan.stage(name)
        state = state_of(needed, facts)
        if state in (MemberState.FAILED, MemberState.CANCELLED):
            return name
        if state is MemberState.HELD and (above := blocked_by(plan, needed, facts)):
            return above
    return None


# ── what can start ────────────────────────────────────────────────────────────


def _ready(plan: Plan, stage: Stage, facts: Facts) -> bool:
    return all(state_of(plan.stage(name), facts) is MemberState.FINISHED for name in stage.needs)


def _workers(plan: Plan, facts: Facts, tasks: tuple[Task, ...]) -> list[StartWorker]:
    """As many as there is room and work for. Those still queued will take a share each, so they are counted as help that is coming."""
    room = plan.workers.max_running - sum(crew.queued + crew.running for crew in facts.crews.values())
    askable = plan.workers.max_requests - sum(crew.queued for crew in facts.crews.values())
    started: list[StartWorker] = []
    for pool in plan.pools:
        crew = facts.crews.get(pool.name, Crew())
        if crew.failures >= FAILURES_BORNE or any(state_of(plan.stage(name), facts) is not MemberState.FINISHED for name in pool.needs):
            continue
        open_ones = len(_in(plan, pool.name, tasks, facts, TaskState.OPEN))
        wanted = math.ceil(open_ones / plan.workers.tasks_each) - crew.queued
        for _ in range(max(0, min(wanted, room - len(started), askable - len(started)))):
            started.append(StartWorker(pool=pool.name, number=facts.workers_made + len(started) + 1))
    return started


def _in(plan: Plan, pool: str, tasks: tuple[Task, ...], facts: Facts, *states: TaskState) -> list[Task]:
    names = {benchmark.name for benchmark in plan.benchmarks if benchmark.pool == pool}
    return [task for task in tasks if task.benchmark in names and facts.tasks.get(task.id, TaskState.OPEN) in states]


# ── whether it is over ────────────────────────────────────────────────────────


def _live(plan: Plan, facts: Facts) -> bool:
    going = any(state_of(stage, facts) in (MemberState.LIVE, MemberState.UNKNOWN) for stage in plan.stages)
    return going or any(crew.queued + crew.running for crew in facts.crews.values())


def _nothing_left(plan: Plan, facts: Facts, tasks: tuple[Task, ...]) -> bool:
    for stage in plan.stages:
        if not state_of(stage, facts).over and not (state_of(stage, facts) is MemberState.HELD and blocked_by(plan, stage, facts)):
            return False
    for pool in plan.pools:
        crew = facts.crews.get(pool.name, Crew())
        unfinished = _in(plan, pool.name, tasks, facts, TaskState.OPEN, TaskState.CLAIMED)
        if unfinished and not (_hopeless(plan, pool.name, facts) and not crew.queued + crew.running):
            return False
    return True


def _hopeless(plan: Plan, pool: str, facts: Facts) -> bool:
    """No worker of this pool will be started any more: they fail, or what they need has."""
    needs = next(one.needs for one in plan.pools if one.name == pool)
    bad = (MemberState.FAILED, MemberState.CANCELLED)
    broken = any(state_of(plan.stage(name), facts) in bad or blocked_by(plan, plan.stage(name), facts) for name in needs)
    return broken or facts.crews.get(pool, Crew()).failures >= FAILURES_BORNE


def _ended(plan: Plan, facts: Facts, tasks: tuple[Task, ...]) -> Over:
    for stage in plan.stages:
        if state_of(stage, facts) in (MemberState.FAILED, MemberState.CANCELLED):
            why = facts.causes.get(stage.name) or state_of(stage, facts).value
            return Over(state=RunState.FAILED, cause=f"stage {stage.name}: {why}")
    for pool in plan.pools:
        crew = facts.crews.get(pool.name, Crew())
        left = _in(plan, pool.name, tasks, facts, TaskState.OPEN, TaskState.CLAIMED)
        if left:
            return Over(
                state=RunState.FAILED,
                cause=f"{len(left)} of {len(tasks)} tasks were left: {crew.failures} workers failed in a row: {crew.cause}",
            )
    failed = [task for task in tasks if facts.tasks.get(task.id) is TaskState.FAILED]
    if failed:
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        named = ", ".join(task.id for task in failed[:3])
        return Over(state=RunState.FAILED, cause=f"{len(failed)} of {len(tasks)} tasks failed: {named}{more}")
    return Over(state=RunState.FINISHED, cause="all stages and tasks are done" if tasks else "all stages are done")
