"""Benchmark tasks as they lie in a pipeline's folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from onward.model.events import Ended
from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner
from onward.model.pipelines.plan import Benchmark, ExistingModel, PipelinePlan
from onward.model.pipelines.score import Score, TaskResult
from onward.model.pipelines.task import TaskState, tasks_of
from onward.rundir.claim import claim
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import (
    AttemptOwners,
    allow_another_attempt,
    end_attempt,
    newest_attempt,
    read_result,
    take_attempt,
    task_dir,
    task_history,
    task_results,
    task_standings,
    task_states,
    write_result,
)

BENCHMARK = Benchmark(name="sums", command=("true",), of=("base",), pool="all", shards=2, retries=0)
PLAN = PipelinePlan(
    name="nightly", experiment="e", cluster="local", models=(ExistingModel(name="base", path="/m"),), benchmarks=(BENCHMARK,)
)
TASKS = tasks_of(PLAN, {})
ONE, TWO = (task.id for task in TASKS)


@pytest.fixture
def dir(tmp_path: Path) -> PipelineDir:
    dir = PipelineDir(tmp_path / "2026-11-16_A_nightly")
    dir.make()
    return dir


@pytest.fixture
def worker(dir: PipelineDir) -> RunDir:
    run = dir.worker(1)
    run.make()
    claim(run, 1, job="1")
    return run


def owner(run: RunDir, leg: int = 1) -> AttemptOwner:
    return AttemptOwner(run=run.path.name, leg=leg)


def take(dir: PipelineDir, run: RunDir, number: int = 1, leg: int = 1) -> Attempt:
    assert take_attempt(task_dir(dir, TASKS[0]), number, owner(run, leg), host="n1", at=1.0)
    return Attempt(number=number, owner=owner(run, leg), host="n1", at=1.0)


def write_end(run: RunDir, *, leg: int) -> None:
    journal = Journal(run.leg_journal(leg))
    journal.write(Ended(leg=leg, at=2.0, end="time_limit", reason="its time was over"))
    journal.close()


def state(dir: PipelineDir) -> TaskState:
    return task_states(dir, PLAN, TASKS)[ONE]


def test_an_attempt_is_taken_once(dir: PipelineDir, worker: RunDir) -> None:
    take(dir, worker)
    folder = task_dir(dir, TASKS[0])
    assert not take_attempt(folder, 1, owner(dir.worker(2)), host="n2", at=2.0)
    assert newest_attempt(folder) == 1
    assert task_states(dir, PLAN, TASKS) == {ONE: TaskState.CLAIMED, TWO: TaskState.OPEN}


@pytest.mark.parametrize("how", ["closed", "later leg", "ended", "taken away"])
def test_a_task_is_open_again_when_its_worker_is_over(dir: PipelineDir, worker: RunDir, how: str) -> None:
    take(dir, worker)
    match how:
        case "closed":
            worker.done.write_text("{}")
        case "later leg":
            claim(worker, 2, job="2")
        case "ended":
            write_end(worker, leg=1)
        case _:
            worker.path.rename(worker.path.with_name("gone"))
    assert state(dir) is TaskState.OPEN
    assert task_standings(dir, PLAN, TASKS)[ONE].next == 2


def test_a_task_stays_with_a_worker_whose_root_cannot_be_seen(dir: PipelineDir, worker: RunDir) -> None:
    owners = AttemptOwners(dir.path.parent / "not-mounted")
    assert not owners.gone(owner(worker))


def test_an_attempt_that_left_no_word_got_on_if_the_next_one_found_more_done(dir: PipelineDir, worker: RunDir) -> None:
    folder = task_dir(dir, TASKS[0])
    for number, done in ((1, ""), (2, "a\n"), (3, "a\n")):
        take(dir, worker, number)
        folder.items_done(number).write_text(done)
    worker.done.write_text("{}")
    assert [attempt.items for attempt in task_history(folder, AttemptOwners(dir.path.parent)).attempts] == [1, 0, 0]
    assert task_standings(dir, PLAN, TASKS)[ONE].losses == 2


def test_an_end_of_another_leg_says_nothing_of_this_one(dir: PipelineDir, worker: RunDir) -> None:
    claim(worker, 2, job="2")
    take(dir, worker, leg=2)
    write_end(worker, leg=1)
    assert state(dir) is TaskState.CLAIMED


def test_a_failed_task_says_why_and_can_be_tried_again(dir: PipelineDir, worker: RunDir) -> None:
    end_attempt(task_dir(dir, TASKS[0]), replace(take(dir, worker), end=AttemptEnd.FAILED, reason="exit code 3", evidence="boom", items=2))
    assert (found := task_standings(dir, PLAN, TASKS)[ONE]).state is TaskState.FAILED
    assert (found.reason, found.evidence) == ("exit code 3", "boom")
    assert allow_another_attempt(dir, PLAN, TASKS, by="ada", at=3.0) == [ONE]
    assert task_standings(dir, PLAN, TASKS)[ONE].state is TaskState.OPEN
    assert allow_another_attempt(dir, PLAN, TASKS, by="ada", at=4.0) == [], "nothing failed since"
    kept = task_history(task_dir(dir, TASKS[0]), AttemptOwners(dir.path.parent)).attempts[0]
    assert (kept.items, kept.host, kept.owner) == (2, "n1", owner(worker))


def test_the_first_result_stands(dir: PipelineDir, worker: RunDir) -> None:
    folder = task_dir(dir, TASKS[0])
    take(dir, worker)
    first = TaskResult(scores={"accuracy": Score(value=0.5, count=4, spread=0.1)}, items=4, seconds=2.5, attempt=1)
    assert write_result(folder, first) and not write_result(folder, replace(first, items=9))
    assert read_result(folder) == first and task_results(dir, TASKS) == {ONE: first}
    assert state(dir) is TaskState.DONE


def test_what_a_newer_worker_wrote_is_read_for_what_is_known(dir: PipelineDir, worker: RunDir) -> None:
    folder = task_dir(dir, TASKS[0])
    take(dir, worker)
    folder.result.write_text(json.dumps({"schema": 9, "colour": "red", "items": 1, "scores": {"a": {"value": 1.0, "unit": "m"}}}))
    assert read_result(folder) == TaskResult(scores={"a": Score(value=1.0)}, items=1)
