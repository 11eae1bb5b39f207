"""The placeholders of a command: what `{params.lr}` or `{checkpoints.read}` stands for is known only when a leg starts.

Braces mean so much to others (JSON, shells, awk, OmegaConf) that only our own families are placeholders:
`{checkpoints.…}`, `{params.…}`, `{tensorboard}` and their likely slips. `{{params.lr}}` is the literal text
`{params.lr}`; every other brace, doubled or not, and anything after a `$`, goes to the program as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from onward.errors import InvalidInput
from onward.model.spec import Value

FIXED_PLACEHOLDERS = ("checkpoints.read", "checkpoints.write", "tensorboard")
BENCHMARK_PLACEHOLDERS = ("checkpoint", "step", "shard", "shards", "seed", "items.done", "results")  # of one task's command

_FAMILIES = ("checkpoints?", "params?", "tensorboard")


@cache
def _placeholder(also: tuple[str, ...]) -> re.Pattern[str]:
    families = "|".join([*_FAMILIES, *(re.escape(name.split(".")[0]) for name in also)])
    name = rf"(?:{families})(?:\.[^{{}}\s]*)?"
    return re.compile(rf"\{{\{{({name})\}}\}}|(?<!\$)\{{({name})\}}")


def placeholders_in(command: Iterable[str], also: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names between braces, known or not, in their order and each once: `("checkpoints.read", "params.lr")`.

    `also` are names whose families are placeholders too, as BENCHMARK_PLACEHOLDERS are in the command of a benchmark.
    """
    pattern = _placeholder(also)
    return tuple(dict.fromkeys(match[2] for word in command for match in pattern.finditer(word) if match[2] is not None))


def fill(command: Iterable[str], values: Mapping[str, str], also: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command with its placeholders filled in. A value is never read again, whatever braces it holds."""

    def put(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal is not None:
            return f"{{{literal}}}"
        if name not in values:
            known = ", ".join(f"{{{key}}}" for key in values) or "none"
            raise InvalidInput(f"{{{name}}} in the command stands for nothing", hint=f"the known placeholders are {known}")
        return values[name]

    return tuple(_placeholder(also).sub(put, word) for word in command)


def placeholder_values(params: Mapping[str, Value], *, read: str, write: str, tensorboard: str) -> dict[str, str]:
    """What `fill` is to be given: the folders of this leg, and the run's params as text."""
    folders = dict(zip(FIXED_PLACEHOLDERS, (read, write, tensorboard), strict=True))
    return folders | {f"params.{name}": value_text(value) for name, value in params.items()}


def value_text(value: Value) -> str:
    """A param as a program reads it: `true` and `false` as in YAML, numbers as Python writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
