"""Benchmark tasks as they lie in a pipeline's folder: who takes one, how far it is, how it ended.

Nothing here is locked. An attempt is taken by exclusive create; whoever made the last one owns the task until it ends,
or until its run or leg is over. So a task whose worker was killed at any moment is open again as soon as that is known,
and what the worker had done by then is still there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onward.model import events as ev
from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner, TaskStatus, task_status
from onward.model.pipelines.plan import PipelinePlan
from onward.model.pipelines.score import TaskResult
from onward.model.pipelines.task import Task, TaskState
from onward.model.plain_data import value_from_json, value_to_json
from onward.rundir.claim import newest_claim, take_file
from onward.rundir.files.no_links import read_beneath
from onward.rundir.journal import read_events
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.task_layout import TaskDir, numbered
from onward.rundir.root.presence import Presence, presence_of
from onward.rundir.run_end import is_over
from onward.sdk.atomic_files import write_whole


@dataclass(frozen=True, kw_only=True)
class TaskHistory:
    """All that is written of one task."""

    attempts: tuple[Attempt, ...] = ()
    forgiven: int = 0
    done: bool = False

    def standing(self, retries: int) -> TaskStatus:
        return task_status(self.attempts, done=self.done, forgiven=self.forgiven, retries=retries)


class AttemptOwners:
    """Who is over among those that made attempts. What is over stays so; the others are looked at once for each instance."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[AttemptOwner, bool] = {}

    def gone(self, owner: AttemptOwner) -> bool:
        if owner not in self._known:
            self._known[owner] = _is_over(RunDir(self._root / owner.run), owner.leg, self._root)
        return self._known[owner]


def task_dir(dir: PipelineDir, task: Task) -> TaskDir:
    return TaskDir(dir.tasks / task.id)


# ── reading ───────────────────────────────────────────────────────────────────


def task_history(task: TaskDir, owners: AttemptOwners) -> TaskHistory:
    """Of a task that is done no more than that is read."""
    try:
        names = os.listdir(task.path)
    except FileNotFoundError:
        return TaskHistory()
    found: dict[str, set[int]] = {"claim": set(), "end": set(), "again": set()}
    for kind, number in filter(None, map(numbered, names)):
        found[kind].add(number)
    forgiven = max(found["again"], default=0)
    if task.result.name in names:
        numbers = (Attempt(number=number, owner=AttemptOwner(run="", leg=0), host="", at=0.0) for number in sorted(found["claim"]))
        return TaskHistory(attempts=tuple(numbers), forgiven=forgiven, done=True)
    return TaskHistory(attempts=tuple(_attempt(task, number, owners) for number in sorted(found["claim"])), forgiven=forgiven)


def task_states(dir: PipelineDir, plan: PipelinePlan, tasks: Iterable[Task]) -> dict[str, TaskState]:
    return {id: standing.state for id, standing in task_standings(dir, plan, tasks).items()}


def task_standings(dir: PipelineDir, plan: PipelinePlan, tasks: Iterable[Task]) -> dict[str, TaskStatus]:
    """How each task stands, with the reason of those that failed. Tasks that nobody ever took have no folder."""
    owners = AttemptOwners(dir.path.parent)
    begun = _begun(dir)
    retries = {benchmark.name: benchmark.retries for benchmark in plan.benchmarks}
    untouched = TaskStatus(state=TaskState.OPEN, next=1)
    return {
        task.id: task_history(task_dir(dir, task), owners).standing(retries[task.benchmark]) if task.id in begun else untouched
        for task in tasks
    }


def read_result(task: TaskDir) -> TaskResult | None:
    result = _read(task.result)
    return value_from_json(TaskResult, result) if result else None


# ── writing ───────────────────────────────────────────────────────────────────


def take_attempt(task: TaskDir, number: int, owner: AttemptOwner, *, host: str, at: float) -> bool:
    """False where another was first."""
    return take_file(task.claim(number), json.dumps({**value_to_json(owner), "host": host, "pid": os.getpid(), "at": at}))


def newest_attempt(task: TaskDir) -> int:
    """A worker that sees a higher one than its own has been taken for gone: the task is not its any more."""
    kinds = filter(None, map(numbered, os.listdir(task.path)))
    return max((number for kind, number in kinds if kind == "claim"), default=0)


def end_attempt(task: TaskDir, attempt: Attempt) -> None:
    record = value_to_json(attempt)
    write_whole(task.end(attempt.number), json.dumps({key: record[key] for key in _OF_THE_END}))


def write_result(task: TaskDir, result: TaskResult) -> bool:
    """The first stands, for ever."""
    return take_file(task.result, json.dumps({"schema": 1, **value_to_json(result)}))


def allow_another_attempt(dir: PipelineDir, plan: PipelinePlan, tasks: Iterable[Task], *, by: str, at: float) -> list[str]:
    """Give the tasks that failed all their tries anew. What they have done so far stays done. Returns their ids."""
    text = json.dumps({"by": by, "at": at})
    named = {task.id: task for task in tasks}
    failed = [id for id, standing in task_standings(dir, plan, named.values()).items() if standing.state is TaskState.FAILED]
    for id in failed:
        folder = task_dir(dir, named[id])
        take_file(folder.again(newest_attempt(folder)), text)
    return failed


# ── inside ────────────────────────────────────────────────────────────────────

_OF_THE_END = ("end", "reason", "evidence", "items", "seconds", "early", "ended")


def _attempt(task: TaskDir, number: int, owners: AttemptOwners) -> Attempt:
    claim, end = _read(task.claim(number)) or {}, _read(task.end(number))
    owner = AttemptOwner(run=str(claim.get("run", "")), leg=int(claim.get("leg", 0)))
    begun = Attempt(number=number, owner=owner, host=str(claim.get("host", "")), at=float(claim.get("at", 0.0)))
    if end is None:
        return replace(begun, gone=not owner.run or owners.gone(owner), items=_got_on(task, number))
    record = {key: end[key] for key in _OF_THE_END if key in end}
    return value_from_json(Attempt, {**value_to_json(begun), "end": AttemptEnd.FAILED, **record})


def _got_on(task: TaskDir, number: int) -> int:
    """1 where the attempt after this one found more items done than this one did."""
    try:
        return int(task.items_done(number + 1).stat().st_size > task.items_done(number).stat().st_size)
    except FileNotFoundError:
        return 0


def _read(path: Path) -> dict[str, Any] | None:
    """None where it is not there. What is there is whole; what is not ours is empty."""
    try:
        found = json.loads(read_beneath(path.parents[3], path))  # from its pipeline's folder on
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_over(run: RunDir, leg: int, root: Path) -> bool:
    """Its run is closed or was taken away, a later leg has begun, or its end is known. All else, unknown too, counts as living."""
    taken_away = not run.path.exists() and presence_of(run, root=root) is Presence.GONE
    if is_over(run) or taken_away or newest_claim(run) > leg:
        return True
    return any(isinstance(event, ev.Ended | ev.EndFound) and event.leg == leg for event in read_events(run))


def _begun(dir: PipelineDir) -> set[str]:
    try:
        return set(os.listdir(dir.tasks))
    except FileNotFoundError:
        return set()


def task_results(dir: PipelineDir, tasks: Iterable[Task]) -> Mapping[str, TaskResult]:
    """Those that are done, by id."""
    found = {task.id: read_result(task_dir(dir, task)) for task in tasks}
    return {id: result for id, result in found.items() if result is not None}
