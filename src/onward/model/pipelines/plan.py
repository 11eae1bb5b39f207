"""Plan: everything a pipeline will carry out, expanded from its file and frozen with it. Pure data, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from onward.model.commands.placeholders import RESULTS_OF_A_STAGE
from onward.model.pipelines.environment_build import Build
from onward.model.plain_data import value_from_json, value_to_json
from onward.model.spec import ParamValue, RunDraft


class StageKind(StrEnum):
    ENVIRONMENT = "environment"  # builds what others run in
    STAGE = "stage"
    TRAIN = "train"  # its checkpoints are benchmarked


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One run of the pipeline that is known before anything starts."""

    name: str  # train, or train-03 for the third point of its matrix
    kind: StageKind
    draft: RunDraft  # of an environment: its command is empty, and comes from what is built
    needs: tuple[str, ...] = ()  # stages that must be done before
    environment: str | None = None  # the one of the file's that it runs in; of an environment: itself
    inputs: tuple[str, ...] | None = None  # files and folders whose content decides whether it is done again; None: it always is
    outputs: tuple[str, ...] = ()  # what it leaves, seen from its results folder
    content_hash: str = ""  # of all that decides what it makes; empty: it is never taken for done already
    done_by: str | None = None  # folder of an earlier run that did just this: it is skipped
    matrix: Mapping[str, ParamValue] = field(default_factory=dict)  # the point that this one is

    @property
    def label(self) -> str:
        """For people: `train`, or `train lr 0.01, seed 1`."""
        family = self.name.rsplit("-", 1)[0] if self.matrix else self.name
        return " ".join([family, ", ".join(f"{key} {value}" for key, value in self.matrix.items())]).strip()


# ── benchmarks ────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class CheckpointChoice:
    """Which checkpoints of a training are benchmarked: those that any of these names."""

    all: bool = False
    every: int | None = None  # each nth that was published
    every_steps: int | None = None  # those at multiples of so many steps
    best: bool = False  # each that was the best when it was published
    last: bool = False  # the last one, once the training is finished


@dataclass(frozen=True, kw_only=True)
class AdapterRule:
    """How what a benchmark's command leaves becomes a result."""

    kind: str = "jsonl"  # jsonl | regex | json | exit-code | lm-eval | pytest-benchmark
    file: str | None = None  # where it is written, seen from {results}; None: what it prints
    pattern: str | None = None  # regex: its named groups are metrics
    metrics: Mapping[str, str] = field(default_factory=dict)  # json: metric → keys with dots, as in results.acc


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    name: str
    command: tuple[str, ...]  # {checkpoint} {step} {shard} {shards} {seed} {items.done} {results} {params.NAME}
    of: tuple[str, ...]  # stages and models that it is run on
    pool: str  # whose workers run it
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    checkpoints: CheckpointChoice = field(default_factory=lambda: CheckpointChoice(last=True))
    shards: int = 1
    seeds: tuple[int, ...] = (0,)
    timeout: int | None = None  # seconds of one task, over all its legs
    retries: int = 1  # more tries of a task that failed
    cpus: int | None = None  # that one task takes; None: all its worker has
    gpus: int | None = None
    adapter: AdapterRule = field(default_factory=AdapterRule)
    metric: str = "score"  # what stands in the table
    better: str = "max"  # max | min
    include: tuple[str, ...] = ()  # patterns of task ids; none: all
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExistingModel:
    """A checkpoint that is there already, to be benchmarked beside or without a training."""

    name: str
    path: str


@dataclass(frozen=True, kw_only=True)
class WorkerPool:
    """Workers that are alike: the benchmarks of one pool share what they ask for and what they run in."""

    name: str
    draft: RunDraft  # its command is empty: a worker knows what it is
    environment: str | None = None  # the one of the file's that they run in
    needs: tuple[str, ...] = ()  # stages


@dataclass(frozen=True, kw_only=True)
class WorkerRule:
    """How many workers there may be, of all pools together."""

    max_running: int = 4  # waiting in the queue or running
    max_requests: int = 4  # of these, waiting in the queue
    tasks_each: int = 1  # open tasks that one more worker must find
    idle: int = 0  # seconds that a worker waits for more tasks before it leaves


# ── what comes of it ──────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class UploadRule:
    to: str  # host:/folder for rsync, or a URL
    what: tuple[str, ...] = ("summary", "results")  # summary | results | checkpoints | logs
    retries: int = 5


@dataclass(frozen=True, kw_only=True)
class QualityGate:
    """What a benchmark has to reach, or the summary's exit code says so."""

    benchmark: str
    at_least: float | None = None
    at_most: float | None = None
    worse_by: float | None = None  # than the baseline, at most; as a part of it


@dataclass(frozen=True, kw_only=True)
class SummaryRule:
    rows: str = "checkpoints"  # checkpoints | models (the newest checkpoint of each)
    baseline: str | None = None  # a stage or model that the others are compared with
    cost: str | None = None  # metric for the pareto picture; None: seconds
    gates: tuple[QualityGate, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PipelinePlan:
    name: str
    experiment: str
    cluster: str
    created: float = 0.0
    stages: tuple[Stage, ...] = ()  # each after all that it needs
    builds: tuple[Build, ...] = ()  # environments of the file's that something runs in
    models: tuple[ExistingModel, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    pools: tuple[WorkerPool, ...] = ()
    workers: WorkerRule = field(default_factory=WorkerRule)
    upload: UploadRule | None = None
    summary: SummaryRule = field(default_factory=SummaryRule)

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)


def on_cluster(plan: PipelinePlan, name: str) -> PipelinePlan:
    """The same plan elsewhere; an environment that says where it is built stays there."""
    stages = (replace(one, draft=replace(one.draft, cluster=name)) if one.draft.cluster == plan.cluster else one for one in plan.stages)
    pools = (replace(one, draft=replace(one.draft, cluster=name)) for one in plan.pools)
    return replace(plan, cluster=name, stages=tuple(stages), pools=tuple(pools))


def stages_named(draft: RunDraft) -> tuple[str, ...]:
    """The stages whose results this one's command, params or variables name, as in {stages.prepare.results}."""
    texts = [*draft.command, *(text for text in draft.params.values() if isinstance(text, str)), *draft.variables.values()]
    return tuple(dict.fromkeys(match[1] for text in texts for match in RESULTS_OF_A_STAGE.finditer(text)))


def fill_stages(draft: RunDraft, folders: Mapping[str, str]) -> RunDraft:
    """The draft with the results folders of other stages in it, by their names."""

    def filled(text: str) -> str:
        return RESULTS_OF_A_STAGE.sub(lambda match: folders[match[1]], text)

    return replace(
        draft,
        command=tuple(filled(word) for word in draft.command),
        params={name: filled(value) if isinstance(value, str) else value for name, value in draft.params.items()},
        variables={name: filled(value) for name, value in draft.variables.items()},
    )


def plan_to_json(plan: PipelinePlan) -> dict[str, Any]:
    return {"schema": 1, **value_to_json(plan)}


def plan_from_json(data: Mapping[str, Any]) -> PipelinePlan:
    """Unknown keys are ignored, so that an older supervisor reads what a newer Onward wrote; missing ones are the defaults."""
    return value_from_json(PipelinePlan, data)
