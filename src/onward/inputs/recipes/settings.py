"""The settings of a recipe: typed, bounded, with a default, and where in a run each of them goes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onward.errors import InvalidInput
from onward.model.quantity import format_duration, format_size, parse_duration, parse_size
from onward.model.spec import ParamValue

KINDS = ("int", "float", "str", "bool", "choice", "duration", "memory")
RESOURCES: Mapping[str, str] = {  # what a request may ask of the scheduler, and its kind
    "time": "duration",
    "mem": "memory",
    "cpus_per_task": "int",
    "nodes": "int",
    "ntasks": "int",
    "ntasks_per_node": "int",
    "gpus": "int",
    "partition": "choice",
    "account": "choice",
    "qos": "choice",
    "constraint": "choice",
    "mail_user": "str",
}
LIMITS: Mapping[str, str] = {"total_time": "duration", "mem_max": "memory", "max_legs": "int", "max_restarts": "int"}
_LONGEST_TEXT = 1000  # characters, unless the recipe says otherwise
_LARGEST = 2**53  # what every JSON reader holds
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class RecipeSetting:
    name: str
    kind: str
    to: tuple[str, ...] = ()  # params.NAME, resources.KEY or limits.KEY; the request file has every setting
    least: float | None = None  # of text: characters
    most: float | None = None
    choices: tuple[ParamValue, ...] = ()
    default: ParamValue = None
    required: bool = False
    clamp: bool = False  # a number beyond a bound is replaced by the bound
    description: str = ""

    def read(self, value: object) -> ParamValue:
        """The value as the run gets it, a duration in seconds and memory in MiB. InvalidInput says what was expected."""
        match self.kind:
            case "bool" if isinstance(value, bool):
                return value
            case "str" if isinstance(value, str) and not _UNPRINTABLE.search(value) and self._within(len(value)):
                return value
            case "choice":
                for one in self.choices:
                    if value == one and type(value) is type(one):
                        return one
            case "int" | "float" | "duration" | "memory":
                number = self._number(value)
                if number is not None and (self.clamp or self._within(number)):
                    return self._clamped(number)
        raise InvalidInput(f"found {shown(value)}, expected {self.expected}")

    @property
    def expected(self) -> str:
        """In words: `a whole number from 1 to 200`."""
        words = {
            "int": "a whole number",
            "float": "a number",
            "bool": "true or false",
            "duration": "a time such as 06:00:00 or 0-06:00",
            "memory": "a memory size such as 32G, or a number of MiB",
        }
        if self.kind == "choice":
            return " or ".join(str(one) for one in self.choices)
        if self.kind == "str":
            return f"one line of text of at most {self.most or _LONGEST_TEXT:.0f} characters"
        both = () if self.clamp else (("from", self.least), ("to", self.most))
        bounds = [f"{word} {self.shown(bound)}" for word, bound in both if bound is not None]
        return " ".join([words[self.kind], *bounds])

    def shown(self, value: float) -> str:
        if self.kind == "duration":
            return format_duration(value)
        return format_size(int(value)) if self.kind == "memory" else f"{value:.15g}"

    def schema(self) -> dict[str, Any]:
        """As JSON Schema: what a sender may write."""
        both = () if self.clamp else (("minimum", self.least), ("maximum", self.most))
        bounds = {key: bound for key, bound in both if bound is not None}
        match self.kind:
            case "int" | "float":
                shape: dict[str, Any] = {"type": "integer" if self.kind == "int" else "number", **bounds}
            case "bool":
                shape = {"type": "boolean"}
            case "choice":
                shape = {"enum": list(self.choices)}
            case "str":
                shape = {"type": "string", "maxLength": int(self.most or _LONGEST_TEXT)}
            case _:
                shape = {"type": ["string", "integer"]}
        words = " ".join(part for part in (self.description, f"Expected: {self.expected}.") if part)
        return {"description": words, **shape, **({} if self.required or self.default is None else {"default": self.default})}

    def _number(self, value: object) -> int | float | None:
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:  # a NaN is not
            if self.kind == "float":
                return value
            value = int(value) if int(value) == value else None
        if self.kind == "int" and isinstance(value, int) and not isinstance(value, bool):
            return value if abs(value) <= _LARGEST else None
        if self.kind in ("duration", "memory") and isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 40:
            try:
                return parse_duration(value) if self.kind == "duration" else parse_size(value) or None  # 0 would be all of a node
            except InvalidInput:
                return None
        return None

    def _clamped(self, number: int | float) -> int | float:
        raised = number if self.least is None else max(number, self.least)
        found = raised if self.most is None else min(raised, self.most)
        return found if self.kind == "float" else int(found)

    def _within(self, number: float) -> bool:
        most = self.most if self.most is not None or self.kind != "str" else _LONGEST_TEXT
        return (self.least is None or number >= self.least) and (most is None or number <= most)


def shown(value: object) -> str:
    """A value of a message, in an answer: short, on one line, and plain."""
    if isinstance(value, Mapping | list | tuple):
        return "a list" if not isinstance(value, Mapping) else "a mapping"
    text = {None: "nothing", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
