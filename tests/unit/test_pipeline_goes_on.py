"""A pipeline goes on: what is ready is queued, once, by whoever looks; checkpoints are kept for those who measure them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from onward.checkpoints.publishing.publish import publish
from onward.errors import SubmitRefused
from onward.model.checkpoint import CheckpointName
from onward.model.pipelines.plan import Benchmark, CheckpointChoice, PipelinePlan, Stage, StageKind, WorkerPool, WorkerRule, plan_to_json
from onward.model.pipelines.task import TaskState
from onward.model.spec import BestRule, CheckpointRule, PipelineMembership, RunDraft
from onward.operations.repair.one_run import GRACE
from onward.operations.repair.tend import tend
from onward.operations.submit.new_run import make_held_run
from onward.pipelines.advance import PipelineAdvance, gather_facts, read_plan
from onward.rundir.journal import read_run, read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import task_states
from tests.sandbox import Sandbox

DRAFT = RunDraft(name="digits", experiment="digits", cluster="local", command=("python3", "train.py"))
BEST = replace(DRAFT, checkpoints=CheckpointRule(best=BestRule(metric="accuracy")))


def plan(*, choice: CheckpointChoice | None = None, workers: WorkerRule | None = None) -> PipelinePlan:
    return PipelinePlan(
        name="digits",
        experiment="digits",
        cluster="local",
        stages=(
            Stage(name="prepare", kind=StageKind.STAGE, draft=DRAFT),
            Stage(name="train", kind=StageKind.TRAIN, draft=BEST, needs=("prepare",)),
        ),
        benchmarks=(
            Benchmark(
                name="sums", command=("true",), of=("train",), pool="cpu", shards=2, checkpoints=choice or CheckpointChoice(all=True)
            ),
        ),
        pools=(WorkerPool(name="cpu", draft=DRAFT),),
        workers=workers or WorkerRule(),
    )


class Piped:
    """A pipeline whose runs are played by hand."""

    def __init__(self, sandbox: Sandbox, made: PipelinePlan) -> None:
        self.sandbox = sandbox
        self.dir = PipelineDir(sandbox.root / "2026-11-15_A_digits")
        self.dir.make()
        for stage in made.stages:
            self._hold(stage.draft, stage.name, self.dir.member(stage.name).path)
        for pool in made.pools:
            self._hold(pool.draft, pool.name, self.dir.template(pool.name).path)
        self.dir.plan.write_text(json.dumps(plan_to_json(made)))

    def _hold(self, draft: RunDraft, stage: str, folder: Path) -> None:
        member = PipelineMembership(pipeline=str(self.dir.path), stage=stage)
        make_held_run(self.sandbox.context, draft, cwd=self.sandbox.project, folder=folder, member=member)

    def go_on(self) -> list[str]:
        return PipelineAdvance(dir=self.dir, clock=self.sandbox.clock, make_scheduler=lambda _: self.sandbox.scheduler).work()

    def jobs(self) -> list[str]:
        return [job.status.name.rsplit(".", 2)[0] for job in self.sandbox.scheduler.jobs.values()]

    def end(self, stage: str, state: str = "finished", cause: str = "the training finished") -> None:
        self.dir.member(stage).done.write_text(json.dumps({"state": state, "cause": cause, "leg": 1, "at": 0}))

    def publish(self, step: int, **metrics: float) -> None:
        source = self.sandbox.folder / f"weights-{step}"
        source.write_text(f"weights of {step}")
        store = self.dir.member("train").checkpoints
        publish({"w": source}, store, CheckpointName(1, step), created=0.0, made_by="sdk", metrics=metrics)

    def kept(self) -> list[str]:
        return sorted(path.name for path in self.dir.checkpoints.iterdir() if path.is_dir())


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def piped(sandbox: Sandbox) -> Piped:
    return Piped(sandbox, plan())


# ── stages ────────────────────────────────────────────────────────────────────


def test_what_needs_nothing_is_queued_and_the_others_wait(piped: Piped) -> None:
    piped.go_on()
    assert len(piped.jobs()) == 1
    assert not piped.dir.member("prepare").held.exists() and piped.dir.member("train").held.exists()


def test_looking_twice_queues_once(piped: Piped) -> None:
    assert piped.go_on() and not piped.go_on()
    assert len(piped.jobs()) == 1


def test_a_stage_is_queued_when_all_that_it_needs_is_done(piped: Piped) -> None:
    piped.go_on()
    piped.end("prepare")
    piped.go_on()
    assert not piped.dir.member("train").held.exists() and len(piped.jobs()) == 2


def test_a_stage_that_failed_ends_the_pipeline_with_its_cause(piped: Piped) -> None:
    piped.go_on()
    piped.end("prepare", "failed", "no data")
    said = piped.go_on()
    over = json.loads(piped.dir.over.read_text())
    assert over["state"] == "failed" and over["cause"].startswith("stage prepare: ")
    assert len(piped.jobs()) == 1 and any("is over, failed" in words for words in said)
    assert "is over, failed" in piped.dir.log.read_text()


def test_a_stage_that_the_scheduler_refuses_is_closed_with_its_words(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SubmitRefused("no such partition: moon")

    monkeypatch.setattr(piped.sandbox.scheduler, "submit", refuse)
    piped.go_on()
    closed = read_run(piped.dir.member("prepare")).closed
    assert closed and closed.cause == "the scheduler refused its first leg: no such partition: moon"
    piped.go_on()
    assert json.loads(piped.dir.over.read_text())["cause"] == f"stage prepare: {closed.cause}"


def test_a_stage_that_finds_no_place_in_the_queue_waits_and_is_submitted_by_tend(piped: Piped) -> None:
    piped.sandbox.scheduler.limit = 0
    assert any("waits for a place in the queue" in words for words in piped.go_on())
    run = piped.dir.member("prepare")
    assert read_run(run).closed is None
    piped.sandbox.scheduler.limit = None
    piped.sandbox.clock.sleep(GRACE + 1)
    tend(piped.sandbox.context)
    assert read_run(run).legs[1].job is not None


def test_one_that_was_let_go_of_and_never_queued_is_queued_after_a_while(piped: Piped) -> None:
    run = piped.dir.member("prepare")
    run.held.rename(run.held.with_name("released.json"))  # and whoever did it died
    piped.sandbox.clock.sleep(time.time() - piped.sandbox.clock.now())
    assert not piped.go_on()
    long_ago = time.time() - 1000
    os.utime(run.held.with_name("released.json"), (long_ago, long_ago))
    piped.go_on()
    assert len(piped.jobs()) == 1


def test_a_folder_that_cannot_be_read_is_not_taken_for_done(piped: Piped) -> None:
    piped.go_on()
    piped.dir.member("prepare").done.write_text("{")
    piped.go_on()
    assert piped.dir.member("train").held.exists() and not piped.dir.over.exists()


# ── checkpoints and workers ───────────────────────────────────────────────────


def test_a_checkpoint_is_kept_for_its_benchmarks_and_workers_are_started_while_training_goes_on(piped: Piped) -> None:
    piped.go_on()
    piped.end("prepare")
    piped.go_on()
    piped.publish(100)
    piped.go_on()
    assert piped.kept() == ["train.step-00000100"]
    kept = piped.dir.checkpoint("train", 100) / "w"
    assert kept.read_text() == "weights of 100" and kept.stat().st_nlink == 2  # the same file, not a copy
    assert [run.path.name for run in piped.dir.workers()] == ["2026-11-15_A_digits-worker-001", "2026-11-15_A_digits-worker-002"]
    worker = read_spec(piped.dir.worker(1))
    assert worker.member == PipelineMembership(pipeline=str(piped.dir.path), stage="cpu", worker=1)
    assert worker.id != read_spec(piped.dir.worker(2)).id and piped.dir.worker(1).environment.stat().st_mode & 0o777 == 0o600
    assert len(piped.jobs()) == 4


def test_what_its_training_deletes_stays_for_the_benchmarks(piped: Piped) -> None:
    piped.go_on()
    piped.end("prepare")
    piped.go_on()
    piped.publish(100)
    piped.go_on()

    shutil.rmtree(piped.dir.member("train").checkpoints / "leg-0001.step-00000100")
    piped.publish(200)
    piped.go_on()
    assert [seen.step for seen in gather_facts(piped.dir, read_plan(piped.dir)).checkpoints["train"]] == [100, 200]
    assert piped.kept() == ["train.step-00000100", "train.step-00000200"]


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        (CheckpointChoice(every=2), [200, 400]),
        (CheckpointChoice(every_steps=300), [300]),
        (CheckpointChoice(best=True), [100, 300]),
        (CheckpointChoice(last=True), []),
    ],
)
def test_the_rule_says_which_checkpoints_are_measured(sandbox: Sandbox, choice: CheckpointChoice, kept: list[int]) -> None:
    piped = Piped(sandbox, plan(choice=choice))
    for step, accuracy in ((100, 0.5), (200, 0.4), (300, 0.6), (400, float("nan"))):
        piped.publish(step, accuracy=accuracy)
        piped.go_on()
    assert piped.kept() == [f"train.step-{step:08d}" for step in kept]


def test_the_last_one_is_known_when_the_training_is_done(sandbox: Sandbox) -> None:
    piped = Piped(sandbox, plan(choice=CheckpointChoice(last=True)))
    for name in ("prepare", "train"):
        piped.publish(100 if name == "train" else 50)
        piped.end(name)
    piped.go_on()
    assert piped.kept() == ["train.step-00000100"]


def test_no_more_workers_are_started_than_the_rule_says(sandbox: Sandbox) -> None:
    piped = Piped(sandbox, plan(workers=WorkerRule(max_running=3, max_requests=3)))
    for step in range(100, 1100, 100):
        piped.publish(step)
    piped.go_on()
    assert len(piped.dir.workers()) == 3


def test_a_worker_that_another_makes_while_we_look_is_not_made_twice(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings that end at once both look: the number that one took is the number the other decides on."""
    piped = Piped(sandbox, plan(workers=WorkerRule(max_running=2, max_requests=2)))
    piped.publish(100)

    def meanwhile(*given: object) -> dict[str, TaskState]:
        monkeypatch.undo()
        piped.go_on()
        return task_states(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("onward.pipelines.advance.task_states", meanwhile)
    piped.go_on()
    assert len(piped.dir.workers()) == 2


def test_a_worker_that_another_is_about_to_make_takes_up_its_room(sandbox: Sandbox) -> None:
    piped = Piped(sandbox, plan(workers=WorkerRule(max_running=2, max_requests=2)))
    piped.dir.worker(1).path.mkdir()
    piped.publish(100)
    piped.go_on()
    assert [run.is_run() for run in piped.dir.workers()] == [False, True]


def test_a_worker_that_was_half_made_is_passed_over(piped: Piped) -> None:
    piped.dir.worker(1).path.mkdir()
    os.utime(piped.dir.worker(1).path, (time.time() - 60, time.time() - 60))
    piped.publish(100)
    piped.go_on()
    assert [run.is_run() for run in piped.dir.workers()] == [False, True, True]


def test_a_worker_for_which_there_is_no_room_leaves_nothing(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    piped.publish(100)
    monkeypatch.setattr("onward.pipelines.advance.same_file", full)
    assert any("No space left" in words for words in piped.go_on())
    assert piped.dir.workers() == []


def test_workers_that_keep_failing_end_the_pipeline(piped: Piped) -> None:
    for name in ("prepare", "train"):
        piped.publish(100 if name == "train" else 50)
        piped.end(name)
    for _ in range(4):
        piped.go_on()
        for run in piped.dir.workers():
            run.done.write_text(json.dumps({"state": "failed", "cause": "x", "leg": 1, "at": 0}))
    piped.go_on()
    body: Mapping[str, str] = json.loads(piped.dir.over.read_text())
    assert body["state"] == "failed" and "workers failed in a row" in body["cause"]


def test_a_cancelled_pipeline_starts_nothing_more(piped: Piped) -> None:
    piped.dir.cancelled.write_text(json.dumps({"by": "ada"}))
    piped.go_on()
    assert piped.jobs() == [] and json.loads(piped.dir.over.read_text())["cause"] == "cancelled by ada"


def test_a_run_dir_is_left_alone_once_the_pipeline_is_over(piped: Piped) -> None:
    piped.dir.over.write_text("{}")
    assert piped.go_on() == [] and piped.jobs() == []
    assert isinstance(piped.dir.member("prepare"), RunDir)
