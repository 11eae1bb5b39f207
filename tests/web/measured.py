"""Two pipelines to look at, written as their jobs would have written them: one whose training goes on while its checkpoints are
measured, and a sweep that is over, in which one training and one task failed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.model import events as ev
from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner
from onward.model.pipelines.plan import (
    Benchmark,
    CheckpointChoice,
    ExistingModel,
    PipelinePlan,
    Stage,
    StageKind,
    SummaryRule,
    WorkerPool,
    plan_to_json,
)
from onward.model.pipelines.score import Score, TaskResult
from onward.model.pipelines.task import PublishedCheckpoint, Task, tasks_of
from onward.model.spec import ParamValue, PipelineMembership, RunDraft, spec_to_json
from onward.rundir.claim import claim
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import end_attempt, task_dir, write_result
from tests.histories import make_spec

GOING, SWEEP = "2026-11-15_D_moons", "2026-11-14_A_sweep"
_SAID = """Traceback (most recent call last):
  File "score.py", line 41, in <module>
    margins = margin_of(model, shard(points, args.shard))
  File "score.py", line 27, in margin_of
    raise ValueError("the shard has no point of class 1")
ValueError: the shard has no point of class 1"""


def _draft(name: str) -> RunDraft:
    return RunDraft(name=name, experiment="moons", cluster="local", command=("python", f"{name}.py"))


def _stage(name: str, kind: StageKind, *needs: str, done_by: str | None = None, matrix: Mapping[str, ParamValue] | None = None) -> Stage:
    return Stage(name=name, kind=kind, draft=_draft(name), needs=needs, done_by=done_by, matrix=matrix or {})


def measure(root: Path, now: float) -> None:
    _going(root, now)
    _sweep(root, now)


def _going(root: Path, now: float) -> None:
    told = Told(root / GOING, now - 5400)
    train, step, env = StageKind.TRAIN, StageKind.STAGE, StageKind.ENVIRONMENT
    stages = (
        _stage("env-main", env, done_by=str(root / "environments" / "8075250f6643fa4d2bf4")),
        _stage("prepare", step, "env-main"),
        _stage("train", train, "env-main", "prepare"),
        _stage("distil", step, "train", "env-main"),
    )
    every = CheckpointChoice(all=True)
    benchmarks = (
        Benchmark(name="accuracy", command=("x",), of=("base", "train"), pool="cpu", shards=2, checkpoints=every, metric="accuracy"),
        Benchmark(name="margin", command=("x",), of=("base", "train"), pool="cpu", shards=2, checkpoints=every, retries=0),
        Benchmark(name="loss", command=("x",), of=("train",), pool="cpu", checkpoints=every, better="min", seeds=(1, 2, 3)),
    )
    plan = PipelinePlan(
        name="moons",
        experiment="moons",
        cluster="local",
        created=told.at,
        stages=stages,
        benchmarks=benchmarks,
        models=(ExistingModel(name="base", path="/models/base"),),
        pools=(WorkerPool(name="cpu", draft=_draft("worker")),),
        summary=SummaryRule(baseline="base"),
    )
    told.run("prepare", "p1prepar", begun=told.at + 60, closed=("finished", "the training finished", ""))
    told.run("train", "p1traini", begun=told.at + 300, steps=(1240, 1800))
    told.run("distil", "p1distil", held=True)
    told.run("worker-001", "p1work01", worker=1, begun=told.at + 900, closed=("finished", "there was no task left for it", ""))
    told.run("worker-002", "p1work02", worker=2, begun=told.at + 4000)
    told.run("worker-003", "p1work03", worker=3)
    steps = (300, 600, 900, 1200)
    told.write(plan, {"train": steps})
    for task in told.tasks(plan):
        learned = 0.0 if task.step is None else 1 - math.exp(-task.step / 500)
        if task.benchmark == "margin" and task.shard == 1 and task.step in (None, 600):
            told.failed(task, "exit code 1", _SAID)
        elif task.step == 1200 and (task.benchmark != "accuracy" or task.shard == 1):
            if task.benchmark == "accuracy":
                told.claimed(task, f"{GOING}-worker-002")
        elif task.benchmark == "loss":
            told.done(task, "score", 0.9 - 0.6 * learned + 0.01 * task.seed, spread=None, count=1)
        else:
            name, most = ("accuracy", 0.93) if task.benchmark == "accuracy" else ("score", 1.4)
            told.done(task, name, most * (0.55 + 0.45 * learned) - 0.012 * task.shard, spread=0.2, count=500)


def _sweep(root: Path, now: float) -> None:
    told = Told(root / SWEEP, now - 90_000)
    rates = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
    trains = tuple(_stage(f"train-{n:02d}", StageKind.TRAIN, "env-main", matrix={"lr": rate, "seed": 1}) for n, rate in enumerate(rates, 1))
    names = tuple(stage.name for stage in trains)
    plan = PipelinePlan(
        name="sweep",
        experiment="moons",
        cluster="local",
        created=told.at,
        stages=(_stage("env-main", StageKind.ENVIRONMENT), *trains),
        benchmarks=(Benchmark(name="accuracy", command=("x",), of=names, pool="cpu", shards=2, retries=0),),
        pools=(WorkerPool(name="cpu", draft=_draft("worker")),),
    )
    told.run("env-main", "p2enviro", begun=told.at + 5, closed=("finished", "the environment is built", ""))
    cause = "the training ended with exit code 1"
    for n, name in enumerate(names):
        bad = n == 0
        evidence = "step 40: loss is nan\nFloatingPointError: the loss is not finite" if bad else ""
        told.run(name, f"p2train{n}", begun=told.at + 90, closed=("failed", cause, evidence) if bad else ("finished", "it finished", ""))
    told.write(plan, dict.fromkeys(names[1:], (500,)), last=True)
    for task in told.tasks(plan):
        if task.of == "train-06" and task.shard == 1:
            told.failed(task, "it took longer than its timeout of 10 min", "")
        else:
            told.done(task, "score", 0.95 - 0.04 * abs(int(task.of[-2:]) - 3) - 0.01 * task.shard, spread=0.2, count=400)
    over = {"state": "failed", "cause": f"stage train-01: {cause}: FloatingPointError: the loss is not finite", "at": told.at + 4000}
    told.dir.over.write_text(json.dumps(over))


class Told:
    """A pipeline's folder, and the runs beside it."""

    def __init__(self, folder: Path, at: float) -> None:
        self.dir = PipelineDir(folder)
        self.dir.make()
        self.at = at
        self._seen: dict[str, tuple[PublishedCheckpoint, ...]] = {}

    def write(self, plan: PipelinePlan, checkpoints: Mapping[str, tuple[int, ...]], *, last: bool = False) -> None:
        for of, steps in checkpoints.items():
            self._seen[of] = tuple(PublishedCheckpoint(step=step, number=number, last=last) for number, step in enumerate(steps, 1))
            for seen in self._seen[of]:
                note = {"number": seen.number, "step": seen.step, "name": f"leg-0001.step-{seen.step:08d}"}
                self.dir.seen(of, seen.number).write_text(json.dumps(note))
                self.dir.checkpoint(of, seen.step).mkdir()
        self.dir.plan.write_text(json.dumps(plan_to_json(plan)))

    def tasks(self, plan: PipelinePlan) -> tuple[Task, ...]:
        return tasks_of(plan, self._seen)

    def run(
        self,
        name: str,
        id: str,
        *,
        worker: int | None = None,
        begun: float | None = None,
        closed: tuple[str, str, str] | None = None,
        steps: tuple[int, int] | None = None,
        held: bool = False,
    ) -> RunDir:
        dir = self.dir.member(name)
        dir.make()
        member = PipelineMembership(pipeline=str(self.dir.path), stage="cpu" if worker else name, worker=worker)
        spec = make_spec(id=id, name=f"{self.dir.path.name[13:]}-{name}", experiment="moons", created=self.at, member=member)
        dir.spec.write_text(json.dumps(spec_to_json(spec)))
        if held:
            dir.held.write_text("{}")
            return dir
        journal = Journal(dir.leg_journal(1))
        journal.write(ev.Submitting(leg=1, at=self.at + 1, name=f"{name}.1.00000001", mem=None, time=None))
        journal.write(ev.Submitted(leg=1, at=self.at + 2, name=f"{name}.1.00000001", job="9000001"))
        if begun is not None:
            claim(dir, 1, job="9000001")
            journal.write(ev.Claimed(leg=1, at=begun, job="9000001", hosts=["laptop"], deadline=None, gpus=[]))
            journal.write(ev.Started(leg=1, at=begun + 1, pid=1))
        if steps:
            lines: list[dict[str, Any]] = [
                {"kind": "init", "total": steps[1], "t": begun},
                {"s": steps[0], "t": (begun or 0) + 4000, "m": {"loss": 0.3}},
            ]
            (dir.spool / "leg-0001.train-7.jsonl").write_text("".join(json.dumps({"n": n, **one}) + "\n" for n, one in enumerate(lines)))
        if closed:
            state, cause, evidence = closed
            at = (begun or 0) + 600
            end = "done" if state == "finished" else "crashed"
            journal.write(ev.Ended(leg=1, at=at, end=end, reason=cause, evidence=evidence))
            journal.write(ev.Closed(leg=1, at=at, state=state, cause=cause, evidence=evidence))
            dir.done.write_text(json.dumps({"state": state, "cause": cause, "leg": 1, "at": at}))
        journal.close()
        return dir

    def done(self, task: Task, metric: str, value: float, *, spread: float | None, count: int) -> None:
        folder = task_dir(self.dir, task)
        folder.path.mkdir()
        score = Score(value=round(value, 4), spread=spread, count=count)
        write_result(folder, TaskResult(scores={metric: score}, items=count, seconds=42.0, at=self.at))

    def claimed(self, task: Task, worker: str) -> None:
        folder = task_dir(self.dir, task)
        folder.path.mkdir()
        folder.claim(1).write_text(json.dumps({"run": worker, "leg": 1, "host": "laptop", "at": self.at}))

    def failed(self, task: Task, reason: str, evidence: str) -> None:
        self.claimed(task, "gone")
        attempt = Attempt(
            number=1,
            owner=AttemptOwner(run="gone", leg=1),
            host="laptop",
            at=self.at,
            end=AttemptEnd.FAILED,
            reason=reason,
            evidence=evidence,
        )
        end_attempt(task_dir(self.dir, task), attempt)
