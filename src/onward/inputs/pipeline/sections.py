"""The sections of a pipeline's file, and its shape for editors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import CheckpointsIn, CodeIn, LimitsIn, ResourcesIn, Section, StopIn, schema_of
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
    """What every stage and benchmark has that does not say otherwise. A mapping is merged key by key."""

    params: dict[ParamName, Scalar] = Field(default_factory=dict, description="Params of every stage and benchmark.")
    resources: ResourcesIn = Field(default_factory=ResourcesIn, description="What every job asks for.")
    limits: LimitsIn = Field(default_factory=LimitsIn, description="Where every run ends by itself.")
    environment: EnvironmentUse | None = Field(default=None, description="What every stage and benchmark runs in.")
    launcher: Launcher = Field(default="plain", description="What starts the processes of every stage.")
    stop: StopIn = Field(default_factory=StopIn, description="How every stage is asked to stop.")
    checkpoints: CheckpointsIn = Field(
        default_factory=CheckpointsIn, description="How often every stage makes checkpoints and which are kept."
    )
    code: CodeIn = Field(default_factory=CodeIn, description="How the code goes with the pipeline.")


class WorkersIn(Section):
    max_running: Count = Field(default=4, description="Workers at most at a time, queued or running, whatever they run.")
    max_requests: Count | None = Field(
        default=None, description="Of these, at most so many waiting in the queue at a time; as many as may run, unless said."
    )
    tasks_each: Count = Field(default=1, description="Another worker is asked for only where it finds so many tasks open.")
    idle: Duration | None = Field(
        default=None, description="How long a worker without a task waits for one before it leaves. Not at all, unless said."
    )
    resources: ResourcesIn = Field(
        default_factory=ResourcesIn, description="What a worker asks for, where its benchmark does not say otherwise."
    )
    limits: LimitsIn = Field(default_factory=LimitsIn, description="Where a worker ends by itself.")

    def to_model(self) -> WorkerRule:
        return WorkerRule(
            max_running=self.max_running,
            max_requests=self.max_requests or self.max_running,
            tasks_each=self.tasks_each,
            idle=self.idle or 0,
        )


class GateIn(Section):
    benchmark: PartName = Field(description="The benchmark that is looked at.")
    at_least: Number | None = Field(default=None, description="Its mean must not be below this.")
    at_most: Number | None = Field(default=None, description="Its mean must not be above this.")
    worse_by: Number | None = Field(
        default=None, description="It must not be worse than the baseline by more than this part of it, such as 0.02."
    )

    @model_validator(mode="after")
    def _something(self) -> GateIn:
        if self.at_least is None and self.at_most is None and self.worse_by is None:
            raise custom_error("found nothing to hold it to, expected at-least, at-most or worse-by")
        return self

    def to_model(self) -> QualityGate:
        return QualityGate(**self.model_dump())


class SummaryIn(Section):
    rows: Annotated[str, choice("checkpoints", "models")] = Field(
        default="checkpoints", description="A row for each checkpoint, or for each model: its newest checkpoint."
    )
    baseline: PartName | None = Field(default=None, description="Stage or model that the others are compared with.")
    cost: Metric | None = Field(default=None, description="Metric that stands for what a model costs; its seconds, unless said.")
    gates: list[GateIn] = Field(default_factory=list, description="What must be reached, for an exit code.")

    def to_model(self) -> SummaryRule:
        return SummaryRule(rows=self.rows, baseline=self.baseline, cost=self.cost, gates=tuple(gate.to_model() for gate in self.gates))


def _shortly(value: Any) -> Any:
    """The place alone."""
    return {"to": value} if isinstance(value, str) else value


class UploadIn(Section):
    to: Argument = Field(description="host:/folder for rsync, a URL that fsspec knows such as s3://bucket/folder, or a folder from / on.")
    what: Annotated[list[Annotated[str, choice(*UPLOADABLE)]], BeforeValidator(listed), ShortForm({"enum": list(UPLOADABLE)})] = Field(
        default=["summary", "results"], min_length=1, description="What is uploaded: summary, results, checkpoints, logs."
    )
    retries: CountOrZero = Field(default=5, description="How often what did not arrive is tried again before it is told as a problem.")

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
        default_factory=list, description="Files to read first, seen from this one: what stands here wins, key by key."
    )
    vars: dict[ParamName, Scalar] = Field(
        default_factory=dict, description="Values for {vars.NAME}, which may stand in any text of the file."
    )
    name: Name = Field(description="Name of the pipeline: its folder, and what its runs' names begin with.")
    experiment: Name | None = Field(default=None, description="Experiment its runs belong to; the pipeline's name unless said.")
    cluster: Name = Field(default="auto", description="Where to run: auto, local, slurm, gridengine or a profile of the settings file.")
    defaults: DefaultsIn = Field(default_factory=DefaultsIn, description="What every stage and benchmark has that does not say otherwise.")
    environments: dict[PartName, BuildIn] = Field(
        default_factory=dict, description="Environments that are built before anything runs in them, by name."
    )
    train: StageIn | None = Field(default=None, description="The training: a stage whose name is train.")
    stages: dict[PartName, StageIn] = Field(default_factory=dict, description="Named stages: any command, in the order that `needs` gives.")
    models: dict[PartName, Folder] = Field(
        default_factory=dict, description="Checkpoints that are there already, to be benchmarked: name and folder or file."
    )
    benchmark: list[BenchmarkIn] = Field(default_factory=list, description="What is run on checkpoints while the training goes on.")
    workers: WorkersIn = Field(default_factory=WorkersIn, description="The jobs that run the benchmarks' tasks, many tasks a job.")
    upload: Annotated[UploadIn, BeforeValidator(_shortly), ShortForm({"type": "string"})] | None = Field(
        default=None, description="Where results are copied to as they come, beside the jobs; a word alone is `to`."
    )
    summary: SummaryIn = Field(default_factory=SummaryIn, description="The table at the end.")

    @field_validator("stages")
    @classmethod
    def _not_train(cls, stages: dict[str, StageIn]) -> dict[str, StageIn]:
        if "train" in stages:
            raise custom_error("found a stage called train, expected it as `train:`")
        return stages


def pipeline_schema() -> dict[str, Any]:
    """The file's shape as JSON Schema 2020-12."""
    return schema_of(PipelineIn, "Onward pipeline")
