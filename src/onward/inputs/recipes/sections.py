"""The `recipe` section of a recipe file: known keys, each with its kind of value. The rest of the file is a params file."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import ParamsIn, Section
from onward.inputs.recipes.numbered_names import NUMBER
from onward.inputs.recipes.settings import KINDS, LIMITS, RESOURCES, RecipeSetting
from onward.inputs.values import Duration, Scalar, SizeAboveZero, Switch, choice, custom_error, word
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
    required: Switch = Field(default=False, description="Whether a request must have it; of a name with {n}, one of them at least.")
    max_size: SizeAboveZero | None = Field(default=None, description="Size it may have; limits.inputs unless said.")
    types: list[MediaType] = Field(default_factory=list, description="Media types it may have; any unless said.")
    n: Numbers | None = Field(default=None, description="Numbers that {n} in its name may be; 0-9 unless said.")
    gaps: Switch = Field(default=True, description="Whether numbers may be left out between others.")


class SettingIn(Section):
    type: Annotated[str, choice(*KINDS)] = Field(description="Kind of value: int, float, str, bool, choice, duration or memory.")
    min: Scalar | None = Field(default=None, description="Least value; of text, the fewest characters.")
    max: Scalar | None = Field(default=None, description="Most; of text, the most characters, 1000 unless said.")
    choices: list[Scalar] = Field(default_factory=list, description="Values to choose from.")
    default: Scalar | None = Field(default=None, description="Value where a request has none.")
    required: Switch = Field(default=False, description="Whether a request must have it.")
    clamp: Switch = Field(default=False, description="Whether a number beyond a bound is taken for the bound; else it is refused.")
    to: Targets = Field(default_factory=list, description="Where it goes: params.NAME, resources.KEY or limits.KEY, or several.")
    description: Text = Field(default="", description="What it is, in a line for senders.")

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
    min: Scalar | None = Field(default=None, description="Least value.")
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
    file: ArtifactPath = Field(description="File below the run's artifacts; it may have {n} where the name has it.")
    required: Switch = Field(default=False, description="Whether a finished run without it has failed.")
    of: FileName | None = Field(default=None, description="Input with which it is required; {n} is the same in both.")
    type: MediaType | None = Field(default=None, description="Media type; by the file's name unless said.")


class RequestLimitsIn(Section):
    deadline: Duration | None = Field(default=None, description="Time from a request's arrival to its answer, at most.")
    inputs: SizeAboveZero = Field(default=2048, description="Size of all inputs together; 2G unless said.")
    download_time: Duration = Field(default=3600, description="Time that fetching the inputs may take in a leg; 01:00:00 unless said.")


class RecipeIn(Section):
    title: Text = Field(default="", description="What it does, in a line for people.")
    inputs: dict[FileName, RecipeInputIn] = Field(default_factory=dict, description="Files that a request gives, by name.")
    one_of: list[list[FileName]] = Field(default_factory=list, description="Lists of inputs: of each list, a request has one at least.")
    settings: dict[SettingName, SettingIn] = Field(default_factory=dict, description="Settings that a request may fill, by name.")
    resources: dict[str, BoundIn] = Field(default_factory=dict, description="Resources that a request may ask for itself, with bounds.")
    outputs: dict[FileName, OutputIn] = Field(default_factory=dict, description="Files that the answer has, by name.")
    limits: RequestLimitsIn = Field(default_factory=RequestLimitsIn, description="What a request may take.")

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
                raise custom_error(f"output {name!r}: found {NUMBER} in its name or in its file alone, expected it in both or none")
            if NUMBER in output.file.rpartition("/")[0]:
                raise custom_error(f"output {name!r}: found {NUMBER} in a folder, expected it in the file's own name")
            if output.of is not None and output.of not in inputs:
                raise custom_error(f"output {name!r}: {output.of!r} is none of the inputs")
            if output.of is not None and (NUMBER in name) != (NUMBER in output.of):
                raise custom_error(f"output {name!r}: found {NUMBER} in it or in {output.of!r} alone, expected it in both or none")
        return outputs

    @field_validator("one_of")
    @classmethod
    def _lists_name_inputs(cls, lists: list[list[str]], info: ValidationInfo) -> list[list[str]]:
        unknown = [name for names in lists for name in names if name not in info.data.get("inputs", {})]
        if unknown:
            raise custom_error(f"{unknown[0]!r} is none of the inputs")
        return lists


class RecipeFileIn(ParamsIn):
    recipe: RecipeIn = Field(description="What a request may give, and what it gets back.")


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
        return f"to: {target} is not for requests to fill; expected one of {', '.join(one.replace('_', '-') for one in known)}"
    wanted = known[key]
    if kind != wanted and not (kind == "choice" and wanted in ("int", "str")) and not (wanted == "choice" and kind == "str"):
        return f"to: {target} takes a {wanted}, and this is a {kind}"
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
