"""Sweeps: the `matrix` of a stage, and the points it makes. The same file makes the same points, on every machine."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from onward.inputs.params.sections import Section
from onward.inputs.values import Count, CountOrZero, Number, ParamName, Scalar, ShortForm, choice, custom_error
from onward.model.spec import ParamValue

MOST_POINTS = 1000
_FACTORS = ("grid", "zip", "list", "random", "exclude")

Point = dict[str, ParamValue]
Values = dict[ParamName, list[Scalar]]
Points = list[dict[ParamName, Scalar]]


def _no_points() -> Points:
    return []


def _short(value: Any) -> Any:
    return {"choices": value} if isinstance(value, list) else value


class RangeIn(Section):
    choices: list[Scalar] = Field(default_factory=list, description="Values to draw from; a list means the same.")
    min: Number | None = Field(default=None, description="The smallest value.")
    max: Number | None = Field(default=None, description="The largest value. If both are whole numbers, so are the values drawn.")
    scale: Annotated[str, choice("linear", "log")] = Field(
        default="linear", description="linear, or log: every power of ten is equally likely."
    )

    @model_validator(mode="after")
    def _drawable(self) -> RangeIn:
        if self.choices:
            if self.min is not None or self.max is not None:
                raise custom_error("found choices and a range, expected one of the two")
            return self
        if self.min is None or self.max is None or self.min >= self.max:
            raise custom_error("found no range, expected choices, or min and a greater max")
        if self.scale == "log" and self.min <= 0:
            raise custom_error("found a min without a logarithm, expected one above 0")
        return self

    def draw(self, chance: float) -> ParamValue:
        if self.choices:
            return self.choices[math.floor(chance * len(self.choices))]
        assert self.min is not None and self.max is not None
        whole = isinstance(self.min, int) and isinstance(self.max, int)
        least, greatest = float(self.min), float(self.max) + whole
        if self.scale == "log":
            value = math.exp(math.log(least) + chance * (math.log(greatest) - math.log(least)))
        else:
            value = least + chance * (greatest - least)
        return min(math.floor(value), int(self.max)) if whole else float(f"{value:.6g}")


class RandomIn(Section):
    count: Count = Field(description="How many points to draw.")
    seed: CountOrZero = Field(default=0, description="Seed of the draw: the same seed draws the same points.")
    over: dict[ParamName, Annotated[RangeIn, BeforeValidator(_short), ShortForm({"type": "array"})]] = Field(
        description="What to draw for each param: a list of choices, or min, max and scale."
    )

    def points(self) -> list[Point]:
        source = random.Random(self.seed)
        return [{name: drawn.draw(source.random()) for name, drawn in self.over.items()} for _ in range(self.count)]


class MatrixIn(Section):
    """Its parts are multiplied with each other. A mapping without any of their names is a grid."""

    grid: Values = Field(default_factory=dict, description="Every combination of these values.")
    zip: Values = Field(default_factory=dict, description="Lists of the same length: the first of each, the second of each …")
    list: Points = Field(default_factory=_no_points, description="Points as a list.")
    random: RandomIn | None = Field(default=None, description="Points drawn at random.")
    exclude: Points = Field(default_factory=_no_points, description="Points to leave out: those that have all of these values.")

    @model_validator(mode="before")
    @classmethod
    def _grid_alone(cls, value: Any) -> Any:
        plain = isinstance(value, Mapping) and value and not any(key in _FACTORS for key in value)
        return {"grid": value} if plain else value

    @field_validator("zip")
    @classmethod
    def _same_length(cls, lists: Values) -> Values:
        if len({len(values) for values in lists.values()}) > 1:
            counts = ", ".join(f"{name} {len(values)}" for name, values in lists.items())
            raise custom_error(f"found lists of different lengths ({counts}), expected one length")
        return lists

    @field_validator("exclude")
    @classmethod
    def _each_once(cls, exclude: Any, info: ValidationInfo) -> Any:
        found = [
            *info.data.get("grid", ()),
            *info.data.get("zip", ()),
            *dict.fromkeys(name for one in info.data.get("list", ()) for name in one),
        ]
        found += info.data["random"].over if info.data.get("random") else ()
        for name in {name for name in found if found.count(name) > 1}:
            raise custom_error(f"found {name} in two parts of the matrix, expected it in one")
        return exclude

    def points(self) -> Iterator[Point]:
        """At most one more than there may be, so that nobody waits for a million."""
        factors = [[{name: value} for value in values] for name, values in self.grid.items()]
        if self.zip:
            factors.append([dict(zip(self.zip, values, strict=True)) for values in zip(*self.zip.values(), strict=True)])
        if self.list:
            factors.append(self.list)
        if self.random:
            factors.append(self.random.points())
        merged = ({name: value for part in parts for name, value in part.items()} for parts in itertools.product(*factors))
        wanted = (point for point in merged if point and not any(_has(point, left_out) for left_out in self.exclude))
        return itertools.islice(wanted, MOST_POINTS + 1)


def _has(point: Point, values: Mapping[str, ParamValue]) -> bool:
    return all(name in point and point[name] == value for name, value in values.items())
