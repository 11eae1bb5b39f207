"""The sections of a pipeline's file, and its shape for editors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import CheckpointsIn, CodeIn, LimitsIn, ResourcesIn, Section, StopIn, or_own, schema_of
from onward.inputs.pipeline.benchmark_section import BenchmarkIn
from onward.inputs.pipeline.environment_section import BuildIn
from onward.inputs.pipeline.stage_section import EnvironmentUse, StageIn
from onward.inputs.values import (
    Argument,
    Count,
    CountOrZero,
    Duration,
    File,
    Folder,
    Launcher,
    Metric,
    Name,
    Number,
    ParamName,
    PartName,
    Scalar,
    ShortForm,
    choice,
    custom_error,
    custom_error_from,
    listed,
)
from onward.model.pipelines.plan import QualityGate, SummaryRule, UploadRule, WorkerRule
from onward.model.pipelines.upload import UPLOADABLE, upload_target_kind


class DefaultsIn(Section):
    """Defaults for every stage and benchmark. A mapping is merged key by key."""

    params: dict[ParamName, Scalar] = Field(default_factory=dict, description="Params of every stage and benchmark.")
    resources: ResourcesIn = Field(default_factory=ResourcesIn, description="What every job requests.")
    limits: LimitsIn = Field(default_factory=LimitsIn, description="Limits that end every run.")
    environment: EnvironmentUse | None = Field(default=None, description="What every stage and benchmark runs in.")
    launcher: Launcher = Field(default="plain", description="What starts the processes of every stage.")
    stop: StopIn = Field(default_factory=StopIn, description="How every stage is asked to stop.")
    checkpoints: CheckpointsIn = Field(
        default_factory=CheckpointsIn, description="How often every stage saves checkpoints, and which are kept.", json_schema_extra=or_own
    )
    code: CodeIn = Field(default_factory=CodeIn, description="How the code is stored with the pipeline.")


class WorkersIn(Section):
    max_running: Count = Field(default=4, description="Limit on all workers at a time, queued or running.")
    max_requests: Count | None = Field(
        default=None, description="Limit on the workers waiting in the queue at a time. Default: as many as may run."
    )
    tasks_each: Count = Field(default=1, description="Request another worker only if it would have this many open tasks.")
    idle: Duration | None = Field(
        default=None, description="How long a worker without a task waits for one before it exits. Default: it exits at once."
    )
    resources: ResourcesIn = Field(default_factory=ResourcesIn, description="What a worker requests, unless its benchmark says otherwise.")
    limits: LimitsIn = Field(default_factory=LimitsIn, description="Limits that end a worker.")

    def to_model(self) -> WorkerRule:
        return WorkerRule(
            max_running=self.max_running,
            max_requests=self.max_requests or self.max_running,
            tasks_each=self.tasks_each,
            idle=self.idle or 0,
        )


class GateIn(Section):
    benchmark: PartName = Field(description="The benchmark to check.")
    at_least: Number | None = Field(default=None, description="Its mean must not be below this.")
    at_most: Number | None = Field(default=None, description="Its mean must not be above this.")
    worse_by: Number | None = Field(
        default=None, description="It must not be worse than the baseline by more than this fraction, such as 0.02."
    )

    @model_validator(mode="after")
    def _something(self) -> GateIn:
        if self.at_least is None and self.at_most is None and self.worse_by is None:
            raise custom_error("found no condition, expected at-least, at-most or worse-by")
        return self

    def to_model(self) -> QualityGate:
        return QualityGate(**self.model_dump())


class SummaryIn(Section):
    rows: Annotated[str, choice("checkpoints", "models")] = Field(
        default="checkpoints", description="One row per checkpoint, or per model (its newest checkpoint)."
    )
    baseline: PartName | None = Field(default=None, description="Stage or model that the others are compared with.")
    cost: Metric | None = Field(default=None, description="Metric for what a model costs. Default: its seconds.")
    gates: list[GateIn] = Field(default_factory=list, description="Conditions for --gate.")

    def to_model(self) -> SummaryRule:
        return SummaryRule(rows=self.rows, baseline=self.baseline, cost=self.cost, gates=tuple(gate.to_model() for gate in self.gates))


def _shortly(value: Any) -> Any:
    """The place alone."""
    return {"to": value} if isinstance(value, str) else value


class UploadIn(Section):
    to: Argument = Field(description="host:/folder for rsync, a URL that fsspec supports such as s3://bucket/folder, or an absolute path.")
    what: Annotated[list[Annotated[str, choice(*UPLOADABLE)]], BeforeValidator(listed), ShortForm({"enum": list(UPLOADABLE)})] = Field(
        default=["summary", "results"], min_length=1, description="What to upload: summary, results, checkpoints, logs."
    )
    retries: CountOrZero = Field(default=5, description="How often to retry a failed upload before reporting a problem.")

    @field_validator("to")
    @classmethod
    def _a_place(cls, to: str) -> str:
        try:
            upload_target_kind(to)
        except InvalidInput as error:
            raise custom_error_from(error) from error
        return to

    def to_model(self) -> UploadRule:
        return UploadRule(to=self.to, what=tuple(dict.fromkeys(self.what)), retries=self.retries)


class PipelineIn(Section):
    include: Annotated[list[File], BeforeValidator(listed), ShortForm({"type": "string"})] = Field(
        default_factory=list, description="Files to read first, relative to this one; this file overrides them key by key."
    )
    vars: dict[ParamName, Scalar] = Field(default_factory=dict, description="Values for {vars.NAME}, which works in any text of the file.")
    name: Name = Field(description="Name of the pipeline and its folder; names of its runs begin with it.")
    experiment: Name | None = Field(default=None, description="Experiment its runs belong to. Default: the pipeline's name.")
    cluster: Name = Field(default="auto", description="Where to run: auto, local, slurm, gridengine or a profile of the settings file.")
    defaults: DefaultsIn = Field(default_factory=DefaultsIn, description="Defaults for every stage and benchmark.")
    environments: dict[PartName, BuildIn] = Field(
        default_factory=dict, description="Environments by name; each is built before its first use."
    )
    train: StageIn | None = Field(default=None, description="The training: a stage named train.")
    stages: dict[PartName, StageIn] = Field(default_factory=dict, description="Stages by name: any command, in the order given by `needs`.")
    models: dict[PartName, Folder] = Field(default_factory=dict, description="Existing checkpoints to benchmark: name, and folder or file.")
    benchmark: list[BenchmarkIn] = Field(default_factory=list, description="What to run on checkpoints while the training runs.")
    workers: WorkersIn = Field(default_factory=WorkersIn, description="The jobs that run the benchmarks' tasks, many tasks per job.")
    upload: Annotated[UploadIn, BeforeValidator(_shortly), ShortForm({"type": "string"})] | None = Field(
        default=None, description="Where to copy results as they arrive, separately from the jobs; a single word is `to`."
    )
    summary: SummaryIn = Field(default_factory=SummaryIn, description="The summary table.")

    @field_validator("stages")
    @classmethod
    def _not_train(cls, stages: dict[str, StageIn]) -> dict[str, StageIn]:
        if "train" in stages:
            raise custom_error("found a stage named train, expected it as `train:`")
        return stages


def pipeline_schema() -> dict[str, Any]:
    """The file's shape as JSON Schema 2020-12."""
    return schema_of(PipelineIn, "Onward pipeline")
