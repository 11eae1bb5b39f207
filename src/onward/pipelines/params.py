"""The params file and the flag line: two doors, one set of rules, and a RunDraft behind both.

An error tells everything that is wrong at once, a line each, with its place: `params.yaml:7: train.resources.tiem:
unknown key (did you mean time?)`. At the flag line the place is the flag.
"""

from __future__ import annotations

import difflib
import math
import re
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError, core_schema

from onward.errors import InvalidInput
from onward.model.command import value_text
from onward.model.quantity import parse_duration, parse_size
from onward.model.spec import BestRule, CheckpointRule, Limits, Resources, RunDraft, Value
from onward.pipelines.command_line import check_placeholders, name_from_command, split_command, usable_name
from onward.pipelines.yaml_lines import Keys, load_yaml, parse_scalar, read_text

_LATER = "not in this version yet"
_REFERENCE = "docs/reference/params.md describes every key"
_AS_TEXT = (("train", "command"), ("train", "environment", "variables"))
_TEN_YEARS = 3650 * 86400
_MOST_MIB = 2**40


# ── kinds of values ───────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Kind:
    """One kind of value: what Onward makes of it, and what an editor is told about it."""

    read: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def _wrong(expected: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "expected {expected}", {"expected": expected})


def _said(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("said", "{sentence}", {"sentence": sentence})


def _retold(error: InvalidInput) -> PydanticCustomError:
    return _said("; ".join(part for part in (error.message, error.hint) if part))


def _text(value: Any, expected: str = "text") -> str:
    """Text, or a whole number that is one by accident, as an account `12345` is."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(f"{expected} (in quotes where it looks like something else)" if not isinstance(value, dict | list) else expected)
    text = str(value)
    if re.search("[\0\ud800-\udfff]", text):
        raise _wrong(f"{expected}, in UTF-8 and without a NUL character")
    return text


def word(pattern: str, expected: str, *, upper: bool = False) -> _Kind:
    """Text of one pattern. Where it goes to a scheduler, the pattern has no space, quote or other shell character."""
    compiled = re.compile(pattern)

    def read(value: Any) -> str:
        text = _text(value, expected).upper() if upper else _text(value, expected)
        if not compiled.fullmatch(text):
            raise _wrong(expected)
        return text

    return _Kind(read, {"type": ["string", "integer"], **({} if upper else {"pattern": f"^(?:{pattern})$"})})


_NAME = r"[A-Za-z][A-Za-z0-9._-]{0,63}"


def _read_name(value: Any) -> str:
    text = _text(value, "a name")
    if not re.fullmatch(_NAME, text):
        raise _wrong(f"a letter and then letters, digits, '.', '_' or '-', 64 at most; for example {usable_name(text)}")
    return text


def _read_count(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)) or int(value) < least:
            raise _wrong(f"a whole number, {least} or more")
        return int(value)

    return read


def _quantity(parse: Callable[[str | int], int], expected: str, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or len(text) > 40 or not text.isascii():
            raise _wrong(expected)
        try:
            number = parse(text)
        except InvalidInput as error:
            raise _retold(error) from error
        if number > most or (number == 0 and re.search("[1-9]", text)):  # 1K must not turn into 0, the whole node
            raise _wrong(f"{expected}, not {'more than anyone has' if number else 'less than 1M'}")
        return number

    return read


_read_duration = _quantity(parse_duration, "a time such as 24:00:00 or 7-00:00:00", _TEN_YEARS)
_read_size = _quantity(parse_size, "a memory size such as 32G", _MOST_MIB)


def _read_size_above_zero(value: Any) -> int:
    size = _read_size(value)
    if size == 0:
        raise _wrong("a memory size above zero, such as 128G")
    return size


def _read_every(value: Any) -> str:
    return "auto" if value == "auto" else str(_read_duration(value))


def _read_scalar(value: Any) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("a finite number (or the word in quotes)")
    if value is None or isinstance(value, bool | int | float):
        return value
    return _text(value, "text, a number, true, false or null: params are flat")


def _read_variable(value: Any) -> str:
    return value_text(value) if isinstance(value, bool | float) else _text(value, "text or a number")


def _read_variable_name(value: str) -> str:
    if value.upper().startswith("ONWARD_"):
        raise _said("found a name that begins with ONWARD_, expected another: those are Onward's own")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise _wrong("a variable's name: letters, digits and _, not a digit first")
    return value


def _read_signal(value: Any) -> str:
    name = _text(value, "a signal such as USR2").upper().removeprefix("SIG")
    known = sorted(sig.name.removeprefix("SIG") for sig in signal.Signals)
    if name in ("KILL", "STOP"):
        raise _said(f"found {name}, expected a signal that a program can catch, such as USR2 or TERM")
    if name not in known:
        raise _wrong(f"a signal such as USR2 or TERM{_guess(name, known)}")
    return name


def _read_command(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple):
        raise _wrong("a command: text, or a list of its words")
    words = value if isinstance(value, str) else tuple(_read_variable(item) for item in value)
    try:
        return split_command(_text(words, "a command") if isinstance(words, str) else words)
    except InvalidInput as error:
        raise _retold(error) from error


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false")
    return value


def choice(*words: str, later: Sequence[str] = ()) -> _Kind:
    def read(value: Any) -> str:
        if isinstance(value, str) and value in later:
            raise _said(f"{value} is {_LATER}; expected {' or '.join(words)}")
        if not isinstance(value, str) or value not in words:
            raise _wrong(f"{' or '.join(words)}{_guess(str(value), [*words, *later])}")
        return value

    return _Kind(read, {"enum": list(words)})


def _read_benchmark(value: Any) -> tuple[()]:
    if value not in ([], ()):
        raise _said(f"benchmarks are {_LATER}: they come with pipelines, in a later one; expected [] or no such key")
    return ()


def _without_nulls(value: Any) -> Any:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, Mapping) else value


_MAIL = "NONE|BEGIN|END|FAIL|REQUEUE|ALL|INVALID_DEPEND|STAGE_OUT|TIME_LIMIT(?:_[589]0)?|ARRAY_TASKS"
_GRES = r"[A-Za-z][A-Za-z0-9_.-]*(?::[A-Za-z0-9_.-]+){0,2}"
_COUNT = {"type": ["integer", "string"], "pattern": "^[0-9]{1,9}$"}
_QUANTITY = {"type": ["string", "number"]}
_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_COMMAND = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}]}
_LAUNCHERS = ("srun", "torchrun", "mpirun", "horovodrun")

Name = Annotated[str, _Kind(_read_name, {"type": "string", "pattern": f"^{_NAME}$"})]
Count = Annotated[int, _Kind(_read_count(1), {**_COUNT, "minimum": 1})]
CountOrZero = Annotated[int, _Kind(_read_count(0), {**_COUNT, "minimum": 0})]
Duration = Annotated[int, _Kind(_read_duration, _QUANTITY)]
Interval = Annotated[str, _Kind(_read_every, _QUANTITY)]
Size = Annotated[int, _Kind(_read_size, _QUANTITY)]
SizeAboveZero = Annotated[int, _Kind(_read_size_above_zero, _QUANTITY)]
Word = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]*", "a name: letters, digits, '_', '.', '+', '@' or '-'")]
Words = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.+,-]*", "a name of letters, digits, '_', '.' or '-', or several with commas")]
Hosts = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*", "hosts as Slurm writes them, such as node01,node[03-07]")]
Features = Annotated[str, word(r"[A-Za-z0-9_\[(][A-Za-z0-9_.,:=&|*()\[\]-]*", "features as Slurm writes them, such as a100|h100")]
Gpus = Annotated[str, word(r"(?:[A-Za-z][A-Za-z0-9_.-]*:)?[0-9]{1,4}", "GPUs such as 2, or with a type a100:2")]
Gres = Annotated[str, word(f"{_GRES}(?:,{_GRES})*", "generic resources such as gpu:2 or gpu:a100:2")]
Mail = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:@[A-Za-z0-9][A-Za-z0-9.-]*)?", "a mail address")]
MailTypes = Annotated[
    str, word(f"(?:{_MAIL})(?:,(?:{_MAIL}))*", "BEGIN, END, FAIL, TIME_LIMIT, ALL or NONE, or several with commas", upper=True)
]
Metric = Annotated[str, word(r"[^\s\x00-\x1f](?:[^\x00-\x1f]{0,198}[^\s\x00-\x1f])?", "the name of a logged metric, such as val_accuracy")]
Glob = Annotated[str, word(r"[^\x00-\x1f]+", "a pattern such as data/ or *.tmp")]
ParamName = Annotated[str, word(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}", "a param's name: letters, digits, '_', '.' or '-', a letter first")]
Scalar = Annotated[str | int | float | bool | None, _Kind(_read_scalar, _SCALAR)]
VariableName = Annotated[str, _Kind(_read_variable_name, {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})]
Variables = Annotated[dict[VariableName, Annotated[str, _Kind(_read_variable, _SCALAR)]], BeforeValidator(_without_nulls)]
Signal = Annotated[str, _Kind(_read_signal, {"type": "string"})]
Switch = Annotated[bool, _Kind(_read_flag, {"type": "boolean"})]
Command = Annotated[tuple[str, ...], _Kind(_read_command, _COMMAND)]
Launcher = Annotated[str, choice("plain", later=_LAUNCHERS)]
Benchmark = Annotated[tuple[()], _Kind(_read_benchmark, {"type": "array", "maxItems": 0})]


# ── sections of the file ──────────────────────────────────────────────────────


class Section(BaseModel):
    """A mapping with known keys, `-` and `_` alike. A key without a value is as good as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    later: ClassVar[tuple[str, ...]] = ()  # keys that are planned and not here yet

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        spelled: dict[str, Any] = {}
        for key, item in value.items():
            alike = key.replace("-", "_")
            spelled[alike if alike not in spelled else alike.replace("_", "-")] = item  # a second spelling is an unknown key
        return _without_nulls(spelled)


class ResourcesIn(Section):
    time: Duration | None = Field(default=None, description="Time limit of one leg's job: minutes, MM:SS, HH:MM:SS or D-HH:MM:SS.")
    mem: Size | None = Field(default=None, description="Memory a node, such as 32G; a bare number is MiB; 0 is all of the node's memory.")
    cpus_per_task: Count | None = Field(default=None, description="CPU cores for each task.")
    nodes: Count | None = Field(default=None, description="Nodes.")
    ntasks: Count | None = Field(default=None, description="Tasks in all.")
    ntasks_per_node: Count | None = Field(default=None, description="Tasks on each node.")
    gpus: Gpus | None = Field(default=None, description="GPUs: 2, or with a type a100:2.")
    gres: Gres | None = Field(default=None, description="Generic resources a node: gpu:1 or gpu:a100:2.")
    partition: Words | None = Field(default=None, description="Partition (queue), or several with commas between.")
    account: Word | None = Field(default=None, description="Account that is charged.")
    qos: Word | None = Field(default=None, description="Quality of service.")
    constraint: Features | None = Field(default=None, description="Features the nodes must have, such as a100|h100.")
    reservation: Words | None = Field(default=None, description="Reservation to run in.")
    nodelist: Hosts | None = Field(default=None, description="Hosts to run on, such as node[01-04].")
    exclude: Hosts | None = Field(default=None, description="Hosts to stay away from.")
    mail_user: Mail | None = Field(default=None, description="Who gets the scheduler's mail.")
    mail_type: MailTypes | None = Field(default=None, description="When the scheduler writes mail: BEGIN, END, FAIL …")

    @field_validator("gres")
    @classmethod
    def _ask_once(cls, gres: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("gpus") and any(part.split(":")[0] == "gpu" for part in (gres or "").split(",")):
            raise _said("found GPUs in gpus and in gres, expected one of the two: they would be asked for twice")
        return gres

    def to_model(self) -> Resources:
        return Resources(**self.model_dump(exclude_unset=True))


class LimitsIn(Section):
    total_time: Duration | None = Field(default=None, description="All legs together run no longer than this.")
    max_legs: Count | None = Field(default=None, description="Legs at most; 1000 unless said.")
    max_restarts: CountOrZero | None = Field(
        default=None, description="Bad ends in a row without a new checkpoint that are borne; 3 unless said."
    )
    mem_max: SizeAboveZero | None = Field(default=None, description="Memory may grow up to this after running out.")
    stall_time: Duration | None = Field(default=None, description="A leg that shows no progress for this long is ended and begun again.")


class EnvironmentIn(Section):
    later = ("modules", "conda", "venv", "setup")
    variables: Variables = Field(default_factory=dict, description="Environment variables of the training: name and value.")


class StopIn(Section):
    signal: Signal | None = Field(default=None, description="Signal that asks the training to save and stop, such as USR2.")


class BestIn(Section):
    metric: Metric = Field(description="Logged metric by which a checkpoint is the best.")
    mode: Annotated[str, choice("max", "min")] = Field(default="max", description="Whether more (max) or less (min) is better.")


class CheckpointsIn(Section):
    every: Interval | None = Field(default=None, description="Time between checkpoints, or auto: from how long a save takes.")
    keep: Count | None = Field(default=None, description="Newest checkpoints to keep; 3 unless said.")
    keep_every: Count | None = Field(default=None, description="Checkpoints at multiples of this many steps are kept for good.")
    best: BestIn | None = Field(default=None, description="Keep the best checkpoint too, by a metric.")

    def to_model(self) -> CheckpointRule:
        best = BestRule(metric=self.best.metric, mode=self.best.mode) if self.best else None
        return CheckpointRule(**self.model_dump(exclude_unset=True, exclude={"best"}), best=best)


class CodeIn(Section):
    freeze: Switch = Field(default=True, description="Copy the code at submit, so that later edits do not reach the run.")
    exclude: list[Glob] = Field(default_factory=list, description="Patterns of files not to copy.")


class TrainIn(Section):
    params: dict[ParamName, Scalar] = Field(default_factory=dict, description="The run's parameters, flat: name and value.")
    command: Command = Field(description="What to run: text, split without a shell, or a list of words.")
    resources: ResourcesIn = Field(default_factory=ResourcesIn, description="What each leg's job asks of the scheduler, in Slurm's words.")
    limits: LimitsIn = Field(default_factory=LimitsIn, description="Where the run ends by itself.")
    environment: EnvironmentIn = Field(default_factory=EnvironmentIn, description="What the training finds around it.")
    launcher: Launcher = Field(default="plain", description="What starts the command: plain, the command alone.")
    stop: StopIn = Field(default_factory=StopIn, description="How the training is asked to stop.")
    checkpoints: CheckpointsIn = Field(default_factory=CheckpointsIn, description="How often checkpoints are made and which are kept.")
    code: CodeIn = Field(default_factory=CodeIn, description="How the code goes with the run.")

    @field_validator("command")
    @classmethod
    def _known_placeholders(cls, command: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        try:
            if "params" in info.data:  # else the params are wrong themselves, and told already
                check_placeholders(command, info.data["params"])
        except InvalidInput as error:
            raise _retold(error) from error
        return command

    @field_validator("limits")
    @classmethod
    def _room_to_grow(cls, limits: LimitsIn, info: ValidationInfo) -> LimitsIn:
        resources = info.data.get("resources")
        if limits.mem_max and resources and (resources.mem or 0) > limits.mem_max:
            raise _said("found a mem-max below resources.mem, expected at least as much")
        return limits


class ParamsIn(Section):
    name: Name = Field(description="Name of the run: its folder and its jobs are called so.")
    experiment: Name | None = Field(default=None, description="Experiment the run belongs to; the run's name unless said.")
    cluster: Name = Field(default="auto", description="Where to run: auto, local, slurm or a profile of the settings file.")
    train: TrainIn = Field(description="The training.")
    benchmark: Benchmark = Field(default=(), description="Not in this version yet: leave it empty.")

    def to_draft(self) -> RunDraft:
        train = self.train
        return RunDraft(
            name=self.name,
            experiment=self.experiment or self.name,
            cluster=self.cluster,
            command=train.command,
            params=dict(train.params),
            resources=train.resources.to_model(),
            limits=Limits(**train.limits.model_dump(exclude_unset=True)),
            checkpoints=train.checkpoints.to_model(),
            variables=dict(train.environment.variables),
            stop_signal=train.stop.signal,
            freeze=train.code.freeze,
            exclude=tuple(train.code.exclude),
        )


# ── doors ─────────────────────────────────────────────────────────────────────

#: The flags of `onward submit` that stand for a key of the file, and that key.
FLAGS: Mapping[str, Keys] = {
    **{key.replace("_", "-"): ("train", "resources", key) for key in ResourcesIn.model_fields},
    **{key.replace("_", "-"): ("train", "limits", key) for key in LimitsIn.model_fields},
    "stop-signal": ("train", "stop", "signal"),
    "checkpoint-every": ("train", "checkpoints", "every"),
    "keep": ("train", "checkpoints", "keep"),
    "keep-every": ("train", "checkpoints", "keep_every"),
    "best-metric": ("train", "checkpoints", "best", "metric"),
    "best-mode": ("train", "checkpoints", "best", "mode"),
}


def read_params(path: Path) -> RunDraft:
    """The params file at `path`, or InvalidInput with everything that is wrong with it."""
    return parse_params(read_text(path), str(path))


def parse_params(text: str, source: str) -> RunDraft:
    document = load_yaml(text, source, as_text=_AS_TEXT)
    problems = list(document.problems)

    def place(keys: Keys) -> str:
        return ".".join(document.find(keys)[1])

    try:
        params = ParamsIn.model_validate(document.data)
    except ValidationError as error:
        problems += [(document.find(keys)[0], sentence) for keys, sentence in problems_of(error, ParamsIn, place)]
    if problems:
        lines = [f"{source}:{line}: {sentence}" for line, sentence in sorted(problems, key=lambda problem: problem[0])]
        raise InvalidInput("\n".join(lines), hint=_REFERENCE)
    return params.to_draft()


def draft_from_flags(
    name: str | None,
    experiment: str | None,
    cluster: str | None,
    command: Sequence[str],
    flags: Mapping[str, str | None],
    params: Sequence[str] = (),
    variables: Sequence[str] = (),
    freeze: bool = True,
    exclude: Sequence[str] = (),
) -> RunDraft:
    """The same run from a flag line. `flags` holds the ones of FLAGS; `params` and `variables` are `NAME=VALUE` each."""
    data: dict[str, Any] = {"experiment": experiment, "cluster": cluster, "train": {"command": list(command)}}
    train = data["train"]
    train["code"] = {"freeze": freeze, "exclude": list(exclude)}
    train["params"] = {key: parse_scalar(value) for key, value in _pairs("--param", params)}
    train["environment"] = {"variables": dict(_pairs("--env", variables))}
    for flag, value in flags.items():
        if flag not in FLAGS:
            raise InvalidInput(f"--{flag}: unknown flag{_guess(flag, FLAGS)}")
        if value is not None:
            *above, last = FLAGS[flag]
            section = data
            for key in above:
                section = section.setdefault(key, {})
            section[last] = value
    data["name"] = name if name is not None else name_from_command(command) if command else "run"
    try:
        return ParamsIn.model_validate(data).to_draft()
    except ValidationError as error:
        raise InvalidInput("\n".join(sentence for _, sentence in problems_of(error, ParamsIn, _flag))) from error


def override(draft: RunDraft, *, flags: Mapping[str, str | None], **others: Any) -> RunDraft:
    """A draft from a file, with what the flag line says instead. Only what was given counts."""
    given = {flag: value for flag, value in flags.items() if value is not None}
    line = draft_from_flags(**{**others, "name": others.get("name") or draft.name, "command": ("true",)}, flags=given)
    changes: dict[str, Any] = {key: getattr(line, key) for key in ("name", "experiment", "cluster") if others.get(key)}
    for section in ("resources", "limits", "checkpoints"):
        keys = {FLAGS[flag][2] for flag in given if FLAGS[flag][1] == section}
        changes[section] = replace(getattr(draft, section), **{key: getattr(getattr(line, section), key) for key in keys})
    if "stop-signal" in given:
        changes["stop_signal"] = line.stop_signal
    changes["params"] = {**draft.params, **line.params}
    changes["variables"] = {**draft.variables, **line.variables}
    changes["freeze"] = draft.freeze and line.freeze
    changes["exclude"] = (*draft.exclude, *line.exclude)
    return replace(draft, **changes)


def changes_from_flags(flags: Mapping[str, str | None]) -> dict[str, Any]:
    """What `resume` changes: the fields of Resources and Limits that the flags name, checked as at submit."""
    given = {flag: value for flag, value in flags.items() if value is not None}
    line = draft_from_flags("run", None, None, ("true",), given)
    return {FLAGS[flag][2]: getattr(getattr(line, FLAGS[flag][1]), FLAGS[flag][2]) for flag in given}


def _pairs(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    for text in texts:
        if "=" not in text:
            raise InvalidInput(f"{flag} {text}: found no =, expected NAME=VALUE")
    pairs = [(text.split("=", 1)[0], text.split("=", 1)[1]) for text in texts]
    for index, (key, _) in enumerate(pairs):
        if key in [earlier for earlier, _ in pairs[:index]]:
            raise InvalidInput(f"{flag} {key}: found a second time, expected once")
    return pairs


def _flag(keys: Keys) -> str:
    for flag, path in FLAGS.items():
        if path == keys:
            return f"--{flag}"
    match keys:
        case ("train", "params", name):
            return f"--param {name}"
        case ("train", "environment", "variables", name):
            return f"--env {name}"
        case ("train", "command"):
            return "the command"
    return f"--{keys[-1]}" if len(keys) == 1 else f"--{'-'.join(keys[1:])}"


# ── telling what is wrong ─────────────────────────────────────────────────────


def problems_of(error: ValidationError, model: type[Section], place: Callable[[Keys], str]) -> list[tuple[Keys, str]]:
    """Each thing pydantic found, as the keys to it and a sentence that begins with its place."""
    found = []
    for one in error.errors(include_url=False):
        keys = tuple(str(part) for part in one["loc"] if part != "[key]")
        context = one.get("ctx", {})
        match one["type"]:
            case "said":
                text = context["sentence"]
            case "wrong":
                text = f"found {_shown(one['input'])}, expected {context['expected']}"
            case "missing":
                text = f"missing, expected: {_field(model, keys)}"
            case "extra_forbidden":
                text = _unknown_key(keys[-1], _section(model, keys[:-1]))
            case "model_type" | "dict_type":
                text = f"found {_shown(one['input'])}, expected keys and values"
            case "list_type":
                text = f"found {_shown(one['input'])}, expected a list"
            case _:
                text = f"found {_shown(one['input'])}: {one['msg']}"
        found.append((keys, f"{place(keys)}: {text}"))
    return found


def _unknown_key(key: str, section: type[Section] | None) -> str:
    if section is None:
        return "unknown key"
    if key in section.later:
        return _LATER
    if key.replace("-", "_") in section.model_fields:
        return "found in two spellings, expected one"
    known = [name.replace("_", "-") for name in section.model_fields]
    return f"unknown key{_guess(key.replace('_', '-'), known)}; expected one of {', '.join(known)}"


def _guess(found: str, known: Iterable[str]) -> str:
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(found.lower(), lower, n=1)
    return f" (did you mean {lower[near[0]]}?)" if near else ""


def _shown(value: Any) -> str:
    match value:
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case bool() | None:
            return {True: "true", False: "false", None: "nothing"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _section(model: Any, keys: Keys) -> type[Section] | None:
    """The section at these keys; also below a mapping of sections, as the settings file has."""
    if not keys or not (isinstance(model, type) and issubclass(model, Section)):
        return model if isinstance(model, type) and issubclass(model, Section) else None
    kind = model.model_fields[keys[0]].annotation
    if get_origin(kind) is dict:
        return _section(get_args(kind)[1], keys[2:])
    inner = [arg for arg in get_args(kind) if arg is not type(None)]
    return _section(inner[0] if inner else kind, keys[1:])


def _field(model: type[Section], keys: Keys) -> str:
    section = _section(model, keys[:-1])
    return (section.model_fields[keys[-1]].description if section else None) or "a value"


# ── for editors ───────────────────────────────────────────────────────────────


def json_schema() -> dict[str, Any]:
    """The file's shape as JSON Schema 2020-12: what an editor completes and checks while one types."""
    schema = ParamsIn.model_json_schema()
    for section in (schema, *schema["$defs"].values()):
        section.pop("title", None)
        properties = {}
        for key, described in section.pop("properties").items():
            description = described.pop("description")
            shape = {part: value for part, value in described.items() if part not in ("title", "default")}
            if key not in section.get("required", ()) and "anyOf" not in shape:  # a key without a value is as good as absent
                shape = {"anyOf": [shape, {"type": "null"}]}
            properties[key.replace("_", "-")] = {"description": description, **shape}
        section["properties"] = properties
        alike = {f"^{key.replace('-', '[-_]')}$": described for key, described in properties.items() if "-" in key}
        if alike:
            section["patternProperties"] = alike
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Onward params file", **schema}
