"""RunSpec: what the user asked, frozen at submit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from onward.model.plain_data import value_to_json
from onward.model.requests.inputs import RunInputs

ParamValue = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one leg's job asks for, in Slurm's words. `None` leaves the choice to the cluster."""

    time: int | None = None  # seconds
    mem: int | None = None  # MiB a node; 0 = all of it
    cpus_per_task: int | None = None
    nodes: int | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    gpus: str | None = None  # "2" or "a100:2"
    gres: str | None = None  # "gpu:a100:2"
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: str | None = None
    exclude: str | None = None
    mail_user: str | None = None
    mail_type: str | None = None
    extra: tuple[str, ...] = ()  # options in the scheduler's own words that we have no word for, handed through as they are

    def asks_gpus(self) -> bool:
        """Whether a number of GPUs is asked for; it may be 0."""
        return self.gpus is not None or any(part.split(":")[0] == "gpu" for part in (self.gres or "").split(","))

    def gpu_count(self) -> int:
        """GPUs a node is asked for, by either spelling."""
        total = 0
        for request in (self.gres or "").split(","):
            parts = request.split(":")
            if parts[0] == "gpu":
                total += int(parts[-1]) if parts[-1].isdigit() else 1
        if self.gpus:
            last = self.gpus.split(":")[-1]
            total += int(last) if last.isdigit() else 1
        return total

    def grown(self, *, mem: int | None, exclude: tuple[str, ...]) -> Resources:
        """The same request with more memory and without the nodes that failed us."""
        before = [part for part in (self.exclude or "").split(",") if part]
        merged = ",".join([*before, *(node for node in exclude if node not in before)])
        return replace(self, mem=mem if mem is not None else self.mem, exclude=merged or None)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where a run ends by itself, whatever is left to train."""

    total_time: int | None = None  # seconds of legs, summed
    max_legs: int = 1000
    max_restarts: int = 3  # bad ends in a row without a new checkpoint
    mem_max: int | None = None  # MiB
    stall_time: int | None = None  # seconds without a sign of progress


@dataclass(frozen=True, kw_only=True)
class BestRule:
    metric: str
    mode: str = "max"  # max | min


@dataclass(frozen=True, kw_only=True)
class CheckpointRule:
    every: str = "auto"  # seconds, or "auto": worked out from how long a save takes
    keep: int = 3
    keep_every: int | None = None  # steps: these are kept for good
    best: BestRule | None = None
    own: bool = False  # the training keeps checkpoints of its own, which we do not see
    paths: tuple[str, ...] = ()  # where it keeps them, relative to its working folder: they are published, and put back


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A scheduler we can submit to, as its profile says. Frozen with the run: legs must not depend on a settings file."""

    name: str
    scheduler: str  # local | slurm | gridengine, or a plugin's
    ssh: str | None = None  # host through which it is reached; None: from here
    local_disk: str | None = None
    python: str | None = None  # interpreter for the supervisor on this cluster's nodes
    other_pythons: tuple[str, ...] = ()  # tried after it, where nodes differ
    legs_ahead: int = 0  # legs queued at submit, where jobs may not submit; 0: each leg queues the next
    notify: bool = True  # Grid Engine: whether its warning before a kill is asked for
    names: Mapping[str, str] = field(default_factory=dict)  # Grid Engine: what this site calls our resources
    options: Mapping[str, str] = field(default_factory=dict)  # a plugin's own settings
    cpus: int | None = None  # local only: slots to use; None: what the machine has
    mem: int | None = None  # local only: MiB
    gpus: int | None = None  # local only


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What is set up on the node before the training starts, in this order. Variables are not here: they may be secrets."""

    modules: tuple[str, ...] = ()
    conda: str | None = None  # name or prefix
    venv: str | None = None  # folder
    setup: tuple[str, ...] = ()  # shell lines


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a batch script's author expects what it prints, with the scheduler's own patterns in it. None: only in the run's folder."""

    out: str | None = None
    err: str | None = None  # None: with `out`
    append: bool = False


@dataclass(frozen=True, kw_only=True)
class Script:
    """A batch script that was submitted as it is: its text lies in the run's folder, and its command is this shell with that file."""

    name: str  # the file's name
    folder: str  # where it stood
    shell: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    array: str | None = None  # 1-10:2, as both schedulers write it
    task: int | None = None  # which one of the array this run is
    submitted_from: str = ""
    family: str = "slurm"  # slurm | gridengine: whose words it is written in
    job_name: str = ""  # what its author calls the job
    signal_to: str = "shell"  # who gets the stop signal: shell, steps (what it started by srun) or all


@dataclass(frozen=True, kw_only=True)
class PipelineMembership:
    """Whose part a run is: the folder of the pipeline, and which of its stages this run carries out."""

    pipeline: str
    stage: str
    worker: int | None = None  # which of the workers that share the stage's tasks
    content: str = ""  # hash of all that decides what the stage makes


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    id: str
    name: str
    experiment: str
    cluster: Cluster
    command: tuple[str, ...]
    workdir: str  # where the command starts, relative to the frozen code, or absolute where code is not frozen
    created: float
    user: str
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    limits: Limits = field(default_factory=Limits)
    checkpoints: CheckpointRule = field(default_factory=CheckpointRule)
    stop_signal: str | None = None  # USR2, TERM …; None: the stop file alone
    stop_lead: int | None = None  # seconds before the deadline at which a training is asked to stop; None: measured
    launcher: str = "plain"  # plain | srun | torchrun | mpirun | horovodrun
    environment: Environment = field(default_factory=Environment)
    outputs: Outputs | None = None
    script: Script | None = None
    code: Mapping[str, ParamValue] = field(default_factory=dict)  # git commit and branch, or how the copy was made
    parent: str | None = None  # the run that this is a clone of
    tracker: str | None = None  # address of the server that jobs send their records to, where it cannot see the run's folder
    member: PipelineMembership | None = None  # of the pipeline that queues its first leg
    request: str | None = None  # the gateway's request that it serves


@dataclass(frozen=True, kw_only=True)
class RunDraft:
    """What a door (params file, flag line) hands to `operations.submit`: a RunSpec without what only submit knows."""

    name: str
    experiment: str
    cluster: str  # "auto", a scheduler's name or a profile's
    command: tuple[str, ...]
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    limits: Limits = field(default_factory=Limits)
    checkpoints: CheckpointRule = field(default_factory=CheckpointRule)
    variables: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str | None = None
    stop_lead: int | None = None
    launcher: str = "plain"
    environment: Environment = field(default_factory=Environment)
    outputs: Outputs | None = None
    script: Script | None = None
    script_text: str = ""  # a byte that is no UTF-8 stands in it as Python's surrogateescape has it
    folder: str | None = None  # where it starts, seen from where it is submitted; None: there
    parent: str | None = None  # the run that it was made from
    carry: bool = True  # the submitting shell's environment goes with the run
    freeze: bool = True  # copy the code; False: run it where it stands
    exclude: tuple[str, ...] = ()  # patterns not to copy
    inputs: RunInputs | None = None  # of a request's run: what is fetched before the training starts


def spec_to_json(spec: RunSpec) -> dict[str, Any]:
    return {"schema": 1, **value_to_json(spec)}


def spec_from_json(data: Mapping[str, Any]) -> RunSpec:
    """Unknown keys are ignored, so that an older supervisor reads what a newer Onward wrote; missing ones are the defaults."""
    parts: dict[str, Any] = {name: _part(cls, data[name]) for name, cls in _PARTS.items() if data.get(name) is not None}
    best = data["checkpoints"].get("best")
    if best:
        parts["checkpoints"] = replace(parts["checkpoints"], best=_part(BestRule, best))
    return RunSpec(**{**_known(RunSpec, data), "command": tuple(data["command"]), **parts})


_PARTS: Mapping[str, type] = {
    "cluster": Cluster,
    "resources": Resources,
    "limits": Limits,
    "checkpoints": CheckpointRule,
    "environment": Environment,
    "outputs": Outputs,
    "script": Script,
    "member": PipelineMembership,
}


def _part(cls: type, data: Mapping[str, Any]) -> Any:
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in _known(cls, data).items()})


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(cls)}
    return {key: value for key, value in data.items() if key in names}
