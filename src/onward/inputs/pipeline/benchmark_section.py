"""`benchmark:` of a pipeline: what is run on which checkpoints, in how many parts, and how its results are read."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from onward.errors import InvalidInput
from onward.inputs.command_line import check_placeholders
from onward.inputs.params.sections import ResourcesIn, Section
from onward.inputs.pipeline.stage_section import EnvironmentUse
from onward.inputs.values import (
    Command,
    Count,
    CountOrZero,
    Duration,
    File,
    Glob,
    Metric,
    ParamName,
    PartName,
    Scalar,
    ShortForm,
    Switch,
    choice,
    custom_error,
    custom_error_from,
    listed,
)
from onward.model.commands.placeholders import BENCHMARK_PLACEHOLDERS
from onward.model.pipelines.plan import AdapterRule, Benchmark, CheckpointChoice

_WORDS = ("all", "best", "last")
_KINDS = ("jsonl", "regex", "json", "exit-code", "lm-eval", "pytest-benchmark")


def _choice_in_short(value: Any) -> Any:
    words = [value] if isinstance(value, str) else value
    if isinstance(words, list) and words and all(word in _WORDS for word in words):
        return dict.fromkeys(words, True)
    if isinstance(value, str | list):
        raise custom_error(f"found {value!r}, expected all, best, last, a list of these, or keys such as every: 2")
    return value


class ChoiceIn(Section):
    all: Switch = Field(default=False, description="Every checkpoint.")
    every: Count | None = Field(default=None, description="Every Nth checkpoint that the training publishes.")
    every_steps: Count | None = Field(default=None, description="Checkpoints at multiples of this many steps.")
    best: Switch = Field(
        default=False, description="Every checkpoint that is the best so far when published, by the training's `checkpoints.best`."
    )
    last: Switch = Field(default=False, description="The last one, once the training is finished.")

    @model_validator(mode="after")
    def _something(self) -> ChoiceIn:
        if not (self.all or self.every or self.every_steps or self.best or self.last):
            raise custom_error("found no checkpoints to run on, expected all, best, last, every or every-steps")
        return self

    def to_model(self) -> CheckpointChoice:
        return CheckpointChoice(**self.model_dump())


def _kind_alone(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


class AdapterIn(Section):
    kind: Annotated[str, choice(*_KINDS)] = Field(
        default="jsonl",
        description="jsonl: one JSON object per line, for each item or for all. regex: named groups of `pattern`. "
        "json: numbers from a JSON file. exit-code: 1 if it exits 0, else 0. lm-eval, pytest-benchmark: the output of these tools.",
    )
    file: File | None = Field(default=None, description="The file with the results, relative to {results}. Default: its output.")
    pattern: Annotated[str, BeforeValidator(str)] | None = Field(
        default=None, description="For regex: searched in every line; each named group is a metric, as in accuracy=(?P<score>[0-9.]+)."
    )
    metrics: dict[ParamName, Annotated[str, BeforeValidator(str)]] = Field(
        default_factory=dict,
        description="For json and lm-eval: each metric, and the keys to its number separated by dots, as in results.gsm8k.acc.",
    )

    @model_validator(mode="after")
    def _complete(self) -> AdapterIn:
        if (self.pattern is not None) != (self.kind == "regex"):
            raise custom_error(
                "found no pattern for regex, expected one"
                if self.kind == "regex"
                else f"found a pattern for {self.kind}, expected kind: regex"
            )
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groupindex
            except re.error as error:
                raise custom_error(f"found an invalid pattern ({error}), expected a regular expression") from error
            if not groups:
                raise custom_error("found a pattern without a named group, expected one such as (?P<score>[0-9.]+)")
        if self.kind == "json" and not self.metrics:
            raise custom_error("found no metrics for json, expected them: name, and the keys to its number")
        if self.kind == "exit-code" and (self.file or self.metrics):
            raise custom_error("found file or metrics for exit-code, expected neither: it reads only the exit code")
        return self

    def to_model(self) -> AdapterRule:
        return AdapterRule(kind=self.kind, file=self.file, pattern=self.pattern, metrics=dict(self.metrics))


def _read_seeds(value: Any) -> Any:
    return list(range(value)) if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1000 else value


class BenchmarkIn(Section):
    name: PartName = Field(description="Name of the benchmark, also of its column in the table.")
    params: dict[ParamName, Scalar] = Field(default_factory=dict, description="Its params, flat: name and value, for {params.NAME}.")
    command: Command = Field(
        description="What to run for each task. {checkpoint} is the checkpoint's folder; also {step}, {shard} (from 0), {shards}, "
        "{seed}, {results} (a folder for its files), {items.done} (a file with the items that are done, one per line)."
    )
    of: Annotated[list[PartName], BeforeValidator(listed), ShortForm({"type": "string"})] = Field(
        default_factory=list, description="Stages and models to run it on. Default: the training and all models."
    )
    checkpoints: Annotated[ChoiceIn, BeforeValidator(_choice_in_short), ShortForm({"type": ["string", "array"]})] = Field(
        default_factory=lambda: ChoiceIn(last=True),
        description="Which checkpoints: all, best, last, a list of these, or keys as below. Default: last.",
    )
    shards: Count = Field(default=1, description="Into how many parts to split its items; each is a task.")
    seeds: Annotated[list[CountOrZero], BeforeValidator(_read_seeds), ShortForm({"type": "integer", "minimum": 1})] = Field(
        default_factory=lambda: [0], description="Seeds to run it with, each a task; a number n means 0 to n - 1."
    )
    timeout: Duration | None = Field(default=None, description="A task that takes longer than this, over all its legs, fails.")
    retries: CountOrZero = Field(default=1, description="How often to retry a failed task.")
    cpus: Count | None = Field(
        default=None, description="CPUs per task: a worker runs as many tasks at once as it has room for. Default: all."
    )
    gpus: Count | None = Field(default=None, description="GPUs per task, likewise.")
    adapter: Annotated[AdapterIn, BeforeValidator(_kind_alone), ShortForm({"enum": list(_KINDS)})] = Field(
        default_factory=AdapterIn, description="How to read its results: a kind, or keys as below."
    )
    metric: Metric = Field(default="score", description="The metric to show in the table.")
    better: Annotated[str, choice("max", "min")] = Field(default="max", description="Whether higher (max) or lower (min) is better.")
    environment: EnvironmentUse | None = Field(
        default=None, description="Its environment: the name of one of `environments`, or keys as for a training."
    )
    resources: ResourcesIn = Field(
        default_factory=ResourcesIn, description="What a worker that runs it requests; benchmarks with the same request share workers."
    )
    include: list[Glob] = Field(default_factory=list, description="Only tasks whose id matches one of these patterns.")
    exclude: list[Glob] = Field(default_factory=list, description="No tasks whose id matches one of these patterns, such as *.seed-2.*.")

    @field_validator("command")
    @classmethod
    def _known_placeholders(cls, command: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        try:
            if "params" in info.data:
                check_placeholders(command, info.data["params"], BENCHMARK_PLACEHOLDERS)
        except InvalidInput as error:
            raise custom_error_from(error) from error
        return command

    @field_validator("seeds")
    @classmethod
    def _seeds_once(cls, seeds: list[int]) -> list[int]:
        if not seeds or len(set(seeds)) < len(seeds):
            raise custom_error("found no seeds, or a seed twice, expected each once")
        return seeds

    def to_model(self, *, of: tuple[str, ...], pool: str) -> Benchmark:
        return Benchmark(
            name=self.name,
            command=self.command,
            of=of,
            pool=pool,
            params=dict(self.params),
            checkpoints=self.checkpoints.to_model(),
            shards=self.shards,
            seeds=tuple(self.seeds),
            timeout=self.timeout,
            retries=self.retries,
            cpus=self.cpus,
            gpus=self.gpus,
            adapter=self.adapter.to_model(),
            metric=self.metric,
            better=self.better,
            include=tuple(self.include),
            exclude=tuple(self.exclude),
        )
