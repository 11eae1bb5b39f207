"""The sections of a params file: known keys, each with its kind of value, and the RunDraft they make. Both doors use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from onward.errors import InvalidInput
from onward.inputs.command_line import check_placeholders
from onward.inputs.values import (
    Command,
    Conda,
    Count,
    CountOrZero,
    Duration,
    EmptyBenchmark,
    Features,
    Folder,
    Glob,
    Gpus,
    Gres,
    HostList,
    Interval,
    Launcher,
    Line,
    Mail,
    MailTypes,
    Metric,
    Module,
    Name,
    OwnCheckpoints,
    ParamName,
    PathBelow,
    Scalar,
    SchedulerOption,
    Signal,
    Size,
    SizeAboveZero,
    Switch,
    Variables,
    Word,
    Words,
    choice,
    custom_error,
    custom_error_from,
    without_nulls,
)
from onward.model.spec import BestRule, CheckpointRule, Environment, Limits, Resources, RunDraft


class Section(BaseModel):
    """A mapping with known keys, `-` and `_` alike. A key without a value is as good as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    later: ClassVar[tuple[str, ...]] = ()  # keys that are planned and not here yet
    of_pipelines: ClassVar[tuple[str, ...]] = ()  # keys that only a pipeline's file has

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        spelled: dict[str, Any] = {}
        for key, item in value.items():
            alike = key.replace("-", "_")
            spelled[alike if alike not in spelled else alike.replace("_", "-")] = item  # a second spelling is an unknown key
        return without_nulls(spelled)


class ResourcesIn(Section):
    time: Duration | None = Field(default=None, description="Time limit of one leg's job: minutes, MM:SS, HH:MM:SS or D-HH:MM:SS.")
    mem: Size | None = Field(default=None, description="Memory per node, such as 32G; a bare number is MiB; 0 is all memory of the node.")
    cpus_per_task: Count | None = Field(default=None, description="CPU cores for each task.")
    nodes: Count | None = Field(default=None, description="Nodes.")
    ntasks: Count | None = Field(default=None, description="Number of tasks.")
    ntasks_per_node: Count | None = Field(default=None, description="Tasks per node.")
    gpus: Gpus | None = Field(default=None, description="GPUs: 2, or with a type a100:2.")
    gres: Gres | None = Field(default=None, description="Generic resources per node: gpu:1 or gpu:a100:2.")
    partition: Words | None = Field(default=None, description="Partition (queue), or several separated by commas.")
    account: Word | None = Field(default=None, description="Account to charge.")
    qos: Word | None = Field(default=None, description="Quality of service.")
    constraint: Features | None = Field(default=None, description="Features the nodes must have, such as a100|h100.")
    reservation: Words | None = Field(default=None, description="Reservation to run in.")
    nodelist: HostList | None = Field(default=None, description="Hosts to run on, such as node[01-04].")
    exclude: HostList | None = Field(default=None, description="Hosts not to run on.")
    mail_user: Mail | None = Field(default=None, description="Address for the scheduler's mail.")
    mail_type: MailTypes | None = Field(default=None, description="When the scheduler sends mail: BEGIN, END, FAIL …")
    extra: list[SchedulerOption] = Field(
        default_factory=list, description="Options in the scheduler's own words, such as --licenses=matlab or -l gpu_c=3.5."
    )

    @field_validator("gres")
    @classmethod
    def _ask_once(cls, gres: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("gpus") and any(part.split(":")[0] == "gpu" for part in (gres or "").split(",")):
            raise custom_error("found GPUs in gpus and in gres, expected one of the two: they would be requested twice")
        return gres

    def to_model(self) -> Resources:
        return Resources(**self.model_dump(exclude_unset=True, exclude={"extra"}), extra=tuple(self.extra))


class LimitsIn(Section):
    total_time: Duration | None = Field(
        default=None, description="Limit on the time of all legs together; it ends the leg in which it is reached."
    )
    max_legs: Count | None = Field(default=None, description="Limit on the number of legs. Default: 1000.")
    max_restarts: CountOrZero | None = Field(default=None, description="Failures in a row without a new checkpoint to allow. Default: 3.")
    mem_max: SizeAboveZero | None = Field(default=None, description="After out of memory, a leg requests more, up to this.")
    stall_time: Duration | None = Field(default=None, description="Restart a training without progress for this long.")


class EnvironmentIn(Section):
    modules: list[Module] = Field(default_factory=list, description="Modules to load, in this order, such as cuda/12.0.")
    conda: Conda | None = Field(default=None, description="Conda environment to activate after that: its name or its folder.")
    venv: Folder | None = Field(default=None, description="Virtual environment to activate after that: its folder.")
    setup: list[Line] = Field(default_factory=list, description="Bash lines, run in order in one shell before the training.")
    variables: Variables = Field(default_factory=dict, description="Environment variables of the training.")

    def to_model(self) -> Environment:
        return Environment(modules=tuple(self.modules), conda=self.conda, venv=self.venv, setup=tuple(self.setup))


class StopIn(Section):
    signal: Signal | None = Field(default=None, description="Signal that asks the training to save and stop, such as USR2.")
    lead: Duration | None = Field(
        default=None, description="How long before the end of a leg it is asked. Default: from measured times of saves and publishes."
    )


class BestIn(Section):
    metric: Metric = Field(description="Logged metric that decides which checkpoint is best.")
    mode: Annotated[str, choice("max", "min")] = Field(default="max", description="Whether higher (max) or lower (min) is better.")


class CheckpointsIn(Section):
    every: Interval | None = Field(default=None, description="Time between checkpoints, or auto: derived from how long a save takes.")
    keep: Count | None = Field(default=None, description="How many of the newest to keep; the last two always stay. Default: 3.")
    keep_every: Count | None = Field(default=None, description="Keep checkpoints at multiples of this many steps for good.")
    best: BestIn | None = Field(default=None, description="Also keep the best checkpoint, by a metric.")
    own: OwnCheckpoints = Field(default=False, description="The training keeps its own checkpoints, where Onward does not see them.")
    paths: list[PathBelow] = Field(
        default_factory=list,
        description="Where it keeps them, below its working folder: they are published, and restored if missing.",
        json_schema_extra={"minItems": 1, "uniqueItems": True},
    )

    @model_validator(mode="before")
    @classmethod
    def _own_alone(cls, value: Any) -> Any:
        return {"own": value} if isinstance(value, str) else value

    @field_validator("paths")
    @classmethod
    def _some_and_each_once(cls, paths: list[str]) -> list[str]:
        if not paths:
            raise custom_error("found no path, expected at least one, such as checkpoint.pt; leave paths out if there is none")
        twice = [path for number, path in enumerate(paths) if path in paths[:number]]
        if twice:
            raise custom_error(f"found {twice[0]} twice, expected each path once")
        return paths

    def to_model(self) -> CheckpointRule:
        best = BestRule(metric=self.best.metric, mode=self.best.mode) if self.best else None
        plain = self.model_dump(exclude_unset=True, exclude={"best", "paths"})
        return CheckpointRule(**plain, best=best, paths=tuple(self.paths))


def or_own(schema: dict[str, Any]) -> None:
    """In the JSON schema: `checkpoints: own` instead of keys."""
    schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"enum": ["own"]}]


class CodeIn(Section):
    freeze: Switch = Field(default=True, description="Copy the code at submit, so that later edits do not affect the run.")
    exclude: list[Glob] = Field(default_factory=list, description="Patterns of files not to copy.")


class TrainIn(Section):
    of_pipelines: ClassVar[tuple[str, ...]] = ("matrix", "needs", "inputs", "outputs")

    params: dict[ParamName, Scalar] = Field(default_factory=dict, description="The run's parameters, flat: name and value.")
    command: Command = Field(description="What to run: a text, split without a shell, or a list of words.")
    resources: ResourcesIn = Field(default_factory=ResourcesIn, description="What each leg's job requests, in Slurm's terms.")
    limits: LimitsIn = Field(default_factory=LimitsIn, description="Limits that end the run.")
    environment: EnvironmentIn = Field(default_factory=EnvironmentIn, description="What the training runs in.")
    launcher: Launcher = Field(
        default="plain", description="What starts the command's processes: plain (only the command), srun, torchrun, mpirun or horovodrun."
    )
    stop: StopIn = Field(default_factory=StopIn, description="How the training is asked to stop.")
    checkpoints: CheckpointsIn = Field(
        default_factory=CheckpointsIn,
        description="How often to save checkpoints, and which to keep; or own: the training keeps its own.",
        json_schema_extra=or_own,
    )
    code: CodeIn = Field(default_factory=CodeIn, description="How the code is stored with the run.")

    @field_validator("command")
    @classmethod
    def _known_placeholders(cls, command: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        try:
            if "params" in info.data:  # else the params are wrong themselves, and told already
                check_placeholders(command, info.data["params"])
        except InvalidInput as error:
            raise custom_error_from(error) from error
        return command

    @field_validator("stop")
    @classmethod
    def _time_to_train(cls, stop: StopIn, info: ValidationInfo) -> StopIn:
        resources = info.data.get("resources")
        if stop.lead and resources and resources.time and stop.lead >= resources.time:
            raise custom_error("found a lead as long as resources.time, expected less: the leg would have no time to train")
        return stop

    @field_validator("limits")
    @classmethod
    def _room_to_grow(cls, limits: LimitsIn, info: ValidationInfo) -> LimitsIn:
        resources = info.data.get("resources")
        if limits.mem_max and resources and (resources.mem or 0) > limits.mem_max:
            raise custom_error("found a mem-max below resources.mem, expected at least as much")
        return limits


class ParamsIn(Section):
    of_pipelines: ClassVar[tuple[str, ...]] = ("include", "vars", "defaults", "environments", "stages", "models", "workers", "summary")

    name: Name = Field(description="Name of the run, its folder and its jobs.")
    experiment: Name | None = Field(default=None, description="Experiment the run belongs to. Default: the run's name.")
    cluster: Name = Field(default="auto", description="Where to run: auto, local, slurm, gridengine or a profile of the settings file.")
    train: TrainIn = Field(description="The training.")
    benchmark: EmptyBenchmark = Field(default=(), description="Only for pipelines: leave it empty.")

    def to_draft(self) -> RunDraft:
        return draft_of(self.train, name=self.name, experiment=self.experiment or self.name, cluster=self.cluster)


def draft_of(train: TrainIn, *, name: str, experiment: str, cluster: str) -> RunDraft:
    return RunDraft(
        name=name,
        experiment=experiment,
        cluster=cluster,
        command=train.command,
        params=dict(train.params),
        resources=train.resources.to_model(),
        limits=Limits(**train.limits.model_dump(exclude_unset=True)),
        checkpoints=train.checkpoints.to_model(),
        variables=dict(train.environment.variables),
        environment=train.environment.to_model(),
        stop_signal=train.stop.signal,
        stop_lead=train.stop.lead,
        launcher=train.launcher,
        freeze=train.code.freeze,
        exclude=tuple(train.code.exclude),
    )


def json_schema() -> dict[str, Any]:
    return schema_of(ParamsIn, "Onward params file")


def schema_of(model: type[Section], title: str) -> dict[str, Any]:
    """The file's shape as JSON Schema 2020-12: what an editor completes and checks while one types."""
    schema = model.model_json_schema()
    for section in (schema, *schema["$defs"].values()):
        section.pop("title", None)
        properties = {}
        for key, described in section.pop("properties").items():
            description = described.pop("description")
            shape = {part: value for part, value in described.items() if part not in ("title", "default")}
            kinds = shape.get("anyOf", [shape])
            if key not in section.get("required", ()) and {"type": "null"} not in kinds:  # a key without a value is as good as absent
                shape = {"anyOf": [*kinds, {"type": "null"}]}
            properties[key.replace("_", "-")] = {"description": description, **shape}
        section["properties"] = properties
        alike = {f"^{key.replace('-', '[-_]')}$": described for key, described in properties.items() if "-" in key}
        if alike:
            section["patternProperties"] = alike
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
