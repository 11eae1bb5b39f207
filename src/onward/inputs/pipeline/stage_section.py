"""`train:` and `stages:` of a pipeline: a training as in a params file, with what it needs, reads and leaves, and its sweep."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from onward.inputs.params.sections import EnvironmentIn, TrainIn
from onward.inputs.pipeline.sweep import MatrixIn
from onward.inputs.values import Glob, PartName, ShortForm, custom_error, listed


def _by_name(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


class EnvironmentUseIn(EnvironmentIn):
    use: PartName | None = Field(
        default=None, description="Name of one of the file's `environments`; a name instead of keys means the same."
    )

    @field_validator("use")
    @classmethod
    def _one_of_them(cls, use: str | None, info: ValidationInfo) -> str | None:
        if use and (other := next((key for key in ("conda", "venv") if info.data.get(key)), None)):
            raise custom_error(f"found use and {other}, expected one of the two")
        return use


EnvironmentUse = Annotated[EnvironmentUseIn, BeforeValidator(_by_name), ShortForm({"type": "string"})]
Sweep = Annotated[MatrixIn, ShortForm({"type": "object", "additionalProperties": {"type": "array"}})]  # a grid, without the word
Parts = Annotated[list[PartName], BeforeValidator(listed), ShortForm({"type": "string"})]
Paths = Annotated[list[Glob], BeforeValidator(listed), ShortForm({"type": "string"})]


class StageIn(TrainIn):
    """A stage has all that a training has: it may take several legs, and save checkpoints."""

    environment: EnvironmentUse = Field(
        default_factory=EnvironmentUseIn, description="Its environment: the name of one of `environments`, or keys as in a params file."
    )
    needs: Parts = Field(default_factory=list, description="Stages that must finish before it starts.")
    inputs: Paths | None = Field(
        default=None,
        description="Files, folders and patterns that it reads. If this is given, even as [], the stage is skipped if its inputs, command, "
        "params, environment and needs are unchanged since an earlier pipeline.",
    )
    outputs: Paths = Field(
        default_factory=list, description="Files it must leave in its results folder; if one is missing, it is not done."
    )
    matrix: Sweep | None = Field(default=None, description="Sweep over params: one run per point.")

    @field_validator("command")
    @classmethod
    def _known_placeholders(cls, command: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Looked at when the points of the matrix are known: they bring params of their own."""
        return command
