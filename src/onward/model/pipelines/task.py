"""Task: one shard of one benchmark, with one seed, on one checkpoint. Which tasks there are follows from the plan and the checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from onward.model.pipelines.plan import Benchmark, CheckpointChoice, PipelinePlan, StageKind


class TaskState(StrEnum):
    OPEN = "open"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"  # and no try is left


@dataclass(frozen=True, kw_only=True)
class PublishedCheckpoint:
    """A checkpoint that a training published: known for good, wherever its files are by now."""

    step: int
    number: int  # the nth that the training published, from 1
    best: bool = False  # it was the best when it was published
    last: bool = False  # the training is finished, and this is its newest


@dataclass(frozen=True, kw_only=True)
class Task:
    of: str  # the stage that trains, or the model
    step: int | None  # None: a model, which has no steps
    benchmark: str
    seed: int
    shard: int  # from 0
    shards: int

    @property
    def id(self) -> str:
        """The same on every machine, and good for a folder's name: `train.00000100.arithmetic.seed-1.shard-2-of-4`."""
        step = "model" if self.step is None else f"{self.step:08d}"
        return f"{self.of}.{step}.{self.benchmark}.seed-{self.seed}.shard-{self.shard}-of-{self.shards}"


def tasks_of(plan: PipelinePlan, checkpoints: Mapping[str, Sequence[PublishedCheckpoint]]) -> tuple[Task, ...]:
    """All tasks that can be known by now: older checkpoints first, then in the order of the file. More checkpoints only add to them."""
    steps = sorted({(seen.step, of) for of, each in checkpoints.items() for seen in each})
    found = []
    for benchmark in plan.benchmarks:
        for model in plan.models:
            if model.name in benchmark.of:
                found += _tasks(benchmark, model.name, None)
    for step, of in steps:
        for benchmark in plan.benchmarks:
            if of in benchmark.of and any(seen.step == step and is_chosen(seen, benchmark.checkpoints) for seen in checkpoints[of]):
                found += _tasks(benchmark, of, step)
    return tuple(found)


def is_chosen(seen: PublishedCheckpoint, choice: CheckpointChoice) -> bool:
    return (
        choice.all
        or (choice.every is not None and seen.number % choice.every == 0)
        or (choice.every_steps is not None and seen.step % choice.every_steps == 0)
        or (choice.best and seen.best)
        or (choice.last and seen.last)
    )


def is_wanted(plan: PipelinePlan, of: str, seen: PublishedCheckpoint) -> bool:
    """Whether any benchmark asks for this checkpoint: then it is kept for it, whatever its training keeps."""
    return any(of in benchmark.of and is_chosen(seen, benchmark.checkpoints) for benchmark in plan.benchmarks)


def trainings(plan: PipelinePlan) -> tuple[str, ...]:
    return tuple(stage.name for stage in plan.stages if stage.kind is StageKind.TRAIN)


def _tasks(benchmark: Benchmark, of: str, step: int | None) -> list[Task]:
    tasks = [
        Task(of=of, step=step, benchmark=benchmark.name, seed=seed, shard=shard, shards=benchmark.shards)
        for seed in benchmark.seeds
        for shard in range(benchmark.shards)
    ]
    return [task for task in tasks if _matches(task.id, benchmark)]


def _matches(id: str, benchmark: Benchmark) -> bool:
    included = not benchmark.include or any(fnmatchcase(id, pattern) for pattern in benchmark.include)
    return included and not any(fnmatchcase(id, pattern) for pattern in benchmark.exclude)
