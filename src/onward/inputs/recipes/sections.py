"""The `recipe` section of a recipe file: known keys, each with its kind of value. The rest of the file is a params file."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import ParamsIn, Section
from onward.inputs.recipes.numbered_names import NUMBER
from onward.inputs.recipes.settings import KINDS, LIMITS, RESOURCES, RecipeSetting
from onward.inputs.values import CountOrZero, Duration, Scalar, SizeAboveZero, Switch, choice, custom_error, word
from onward.model.spec import ParamValue

_NAME = r"[^\s./\\{}\x00-\x1f\x7f-][^/\\{}\x00-\x1f\x7f]{0,79}(?:\{n\}[^/\\{}\x00-\x1f\x7f]{0,19})?"
_KEY = r"(?:params\.[A-Za-z_][A-Za-z0-9_.-]{0,127}|resources\.[a-z_-]+|limits\.[a-z_-]+)"

FileName = Annotated[str, word(_NAME, "a name without / that does not begin with a dot, and with one {n} at most")]
SettingName = Annotated[str, word(r"[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,199}", "one line of text")]
Text = Annotated[str, word(r"[^\x00-\x1f\x7f]{0,500}", "one line of text")]
Target = Annotated[str, word(_KEY, "params.NAME, resources.KEY or limits.KEY")]
_TARGET = {"type": "string", "pattern": f"^{_KEY}$"}
Targets = Annotated[
    list[Target],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [_TARGET, {"type": "array", "items": _TARGET}]}),
]
Numbers = Annotated[str, word(r"[0-9]{1,3}-[0-9]{1,3}", "numbers such as 0-9")]
MediaType = Annotated[str, word(r"[a-z0-9.+-]+/(?:[a-z0-9.+-]+|\*)", "a media type such as image/png, or image/*")]
ArtifactPath = Annotated[
    str, word(r"(?!\.)[^/\\\x00-\x1f\x7f]+(?:/(?!\.)[^/\\\x00-\x1f\x7f]+)*", "a file below the run's artifacts, such as models/page.keras")
]


class RecipeInputIn(Section):
    required: Switch = Field(default=False, description="Whether a request must have it; for a name with {n}, at least one.")
    max_size: SizeAboveZero | None = Field(default=None, description="Largest size. Default: limits.inputs.")
    types: list[MediaType] = Field(default_factory=list, description="Allowed media types. Default: any.")
    n: Numbers | None = Field(default=None, description="Allowed numbers for {n} in its name. Default: 0-9.")
    gaps: Switch = Field(default=True, description="Whether the numbers may have gaps.")


class SettingIn(Section):
    type: Annotated[str, choice(*KINDS)] = Field(description="Type of its value: int, float, str, bool, choice, duration or memory.")
    min: Scalar | None = Field(default=None, description="Smallest value; for text, the fewest characters.")
    max: Scalar | None = Field(default=None, description="Largest value; for text, the most characters (default: 1000).")
    choices: list[Scalar] = Field(default_factory=list, description="Values to choose from.")
    default: Scalar | None = Field(default=None, description="Value if the request has none.")
    required: Switch = Field(default=False, description="Whether a request must have it.")
    clamp: Switch = Field(default=False, description="Whether to replace a number beyond a bound by the bound. Default: refuse it.")
    to: Targets = Field(default_factory=list, description="Where it goes: params.NAME, resources.KEY or limits.KEY, or several.")
    description: Text = Field(default="", description="What it is, in one line for senders.")

    def to_model(self, name: str) -> RecipeSetting:
        bare = RecipeSetting(name=name, kind=self.type, choices=tuple(self.choices))
        return replace(
            bare,
            to=tuple(_spelled(target) for target in self.to),
            least=_bound(bare, "min", self.min),
            most=_bound(bare, "max", self.max),
            default=self.default,
            required=self.required,
            clamp=self.clamp,
            description=self.description,
        )


class BoundIn(Section):
    min: Scalar | None = Field(default=None, description="Smallest value.")
    max: Scalar | None = Field(default=None, description="Most.")
    choices: list[Scalar] = Field(default_factory=list, description="Values to choose from.")

    def to_model(self, key: str) -> RecipeSetting:
        kind = RESOURCES[key]
        bare = RecipeSetting(name=key, kind=kind, choices=tuple(self.choices))
        return replace(
            bare,
            name=key.replace("_", "-"),
            to=(f"resources.{key}",),
            least=_bound(bare, "min", self.min),
            most=_bound(bare, "max", self.max),
        )


class OutputIn(Section):
    file: ArtifactPath = Field(description="File below the run's artifacts; it may contain {n} if the name does.")
    required: Switch = Field(default=False, description="Whether a run that finishes without it counts as failed.")
    of: FileName | None = Field(default=None, description="It is required if this input is given; {n} is the same in both.")
    type: MediaType | None = Field(default=None, description="Media type. Default: by the file's name.")


class RequestLimitsIn(Section):
    deadline: Duration | None = Field(default=None, description="Limit on the time from a request's arrival to its reply.")
    inputs: SizeAboveZero = Field(default=2048, description="Limit on the size of all inputs together. Default: 2G.")
    download_time: Duration = Field(default=3600, description="Limit on the time to fetch the inputs in a leg. Default: 01:00:00.")


class FitIn(Section):
    gpus: CountOrZero = Field(default=0, description="GPUs of a request that asks for none, if the cluster has any. Default: 0.")


class RecipeIn(Section):
    title: Text = Field(default="", description="What it does, in one line.")
    inputs: dict[FileName, RecipeInputIn] = Field(default_factory=dict, description="Input files of a request, by name.")
    one_of: list[list[FileName]] = Field(default_factory=list, description="Lists of inputs: a request needs at least one of each list.")
    settings: dict[SettingName, SettingIn] = Field(default_factory=dict, description="Settings that a request may fill, by name.")
    resources: dict[str, BoundIn] = Field(default_factory=dict, description="Resources that a request may choose, with bounds.")
    fit: FitIn | None = Field(default=None, description="Fit requests to the cluster: no more memory and CPUs than its largest node has.")
    outputs: dict[FileName, OutputIn] = Field(default_factory=dict, description="Files of the reply, by name.")
    limits: RequestLimitsIn = Field(default_factory=RequestLimitsIn, description="Limits of a request.")

    @field_validator("settings")
    @classmethod
    def _settings_fit(cls, settings: dict[str, SettingIn]) -> dict[str, SettingIn]:
        for name, setting in settings.items():
            if problem := _unfit(name, setting):
                raise custom_error(f"setting {name!r}: {problem}")
        return settings

    @field_validator("resources")
    @classmethod
    def _resources_are_known(cls, resources: dict[str, BoundIn]) -> dict[str, BoundIn]:
        spelled = {key.replace("-", "_"): bound for key, bound in resources.items()}
        for key, bound in spelled.items():
            if key not in RESOURCES:
                raise custom_error(f"{key}: expected one of {', '.join(one.replace('_', '-') for one in RESOURCES)}")
            if RESOURCES[key] == "choice" and not bound.choices:
                raise custom_error(f"{key}: found no choices, expected those that a request may name")
            try:
                bound.to_model(key)
            except InvalidInput as error:
                raise custom_error(f"{key.replace('_', '-')}: {error.message}") from error
        return spelled

    @field_validator("outputs")
    @classmethod
    def _outputs_fit(cls, outputs: dict[str, OutputIn], info: ValidationInfo) -> dict[str, OutputIn]:
        inputs = info.data.get("inputs", {})
        for name, output in outputs.items():
            if (NUMBER in name) != (NUMBER in output.file):
                raise custom_error(f"output {name!r}: found {NUMBER} only in its name or only in its file, expected it in both or neither")
            if NUMBER in output.file.rpartition("/")[0]:
                raise custom_error(f"output {name!r}: found {NUMBER} in a folder, expected it in the file's name")
            if output.of is not None and output.of not in inputs:
                raise custom_error(f"output {name!r}: {output.of!r} is not an input")
            if output.of is not None and (NUMBER in name) != (NUMBER in output.of):
                raise custom_error(f"output {name!r}: found {NUMBER} only in it or only in {output.of!r}, expected it in both or neither")
        return outputs

    @field_validator("one_of")
    @classmethod
    def _lists_name_inputs(cls, lists: list[list[str]], info: ValidationInfo) -> list[list[str]]:
        unknown = [name for names in lists for name in names if name not in info.data.get("inputs", {})]
        if unknown:
            raise custom_error(f"{unknown[0]!r} is not an input")
        return lists


class RecipeFileIn(ParamsIn):
    recipe: RecipeIn = Field(description="What a request may contain, and what it gets back.")


def _unfit(name: str, setting: SettingIn) -> str:
    """What is wrong with a setting, taken as a whole."""
    if setting.type == "choice" and not setting.choices:
        return "found no choices, expected those that a request may name"
    if setting.type != "choice" and setting.choices:
        return "found choices, expected them only with type choice"
    try:
        made = setting.to_model(name)
        if setting.default is not None:
            made.read(setting.default)
    except InvalidInput as error:
        return error.message if "min" in error.message[:4] or "max" in error.message[:4] else f"default: {error.message}"
    if made.least is not None and made.most is not None and made.least > made.most:
        return "found a min above its max"
    for target in made.to:
        if problem := _misled(made.kind, target):
            return problem
    return ""


def _misled(kind: str, target: str) -> str:
    room, _, key = target.partition(".")
    known = {"resources": RESOURCES, "limits": LIMITS}.get(room)
    if known is None:
        return ""
    if key not in known:
        return f"to: {target} cannot be filled by requests; expected one of {', '.join(one.replace('_', '-') for one in known)}"
    wanted = known[key]
    if kind != wanted and not (kind == "choice" and wanted in ("int", "str")) and not (wanted == "choice" and kind == "str"):
        return f"to: {target} takes a {wanted}, but this is a {kind}"
    return ""


def _bound(setting: RecipeSetting, key: str, value: ParamValue) -> float | None:
    """A bound, written as a value of its kind is; of text, a number of characters."""
    if value is None:
        return None
    if setting.kind in ("bool", "choice"):
        raise InvalidInput(f"{key}: a {setting.kind} has no bounds")
    kind = "int" if setting.kind == "str" else setting.kind
    try:
        found = RecipeSetting(name=setting.name, kind=kind).read(value)
    except InvalidInput as error:
        raise InvalidInput(f"{key}: {error.message}") from error
    assert isinstance(found, int | float)
    return found


def _spelled(target: str) -> str:
    room, _, key = target.partition(".")
    return target if room == "params" else f"{room}.{key.replace('-', '_')}"
