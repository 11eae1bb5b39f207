"""Score: what a benchmark says of a model, as a mean over so many values with their spread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Score:
    value: float
    count: int = 1  # values that it is the mean of
    spread: float | None = None  # their standard deviation; None where it is not known


@dataclass(frozen=True, kw_only=True)
class BenchmarkItem:
    """One question, sample or case of a benchmark, done."""

    id: str
    values: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ParsedOutput:
    """What was found in a benchmark's output."""

    items: tuple[BenchmarkItem, ...] = ()
    scores: Mapping[str, Score] = field(default_factory=dict)  # of the task as a whole
    repeated: int = 0  # lines of items that were done before: the first counts

    @property
    def empty(self) -> bool:
        return not self.items and not self.scores


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """The last word on a task: all that a summary needs."""

    scores: Mapping[str, Score]
    items: int = 0
    errors: int = 0  # items that said so themselves
    repeated: int = 0
    seconds: float = 0.0  # of all its attempts
    cpus: int = 1
    gpus: int = 0
    at: float = 0.0
    attempt: int = 1


def mean_of(values: Sequence[float]) -> Score:
    """Of at least one value."""
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) if len(values) > 1 else None
    return Score(value=mean, count=len(values), spread=spread)


def scores_of(reading: ParsedOutput) -> dict[str, Score]:
    """Each value of the items as a mean over them; what was said of the whole task goes before."""
    columns: dict[str, list[float]] = {}
    for item in reading.items:
        for name, value in item.values.items():
            columns.setdefault(name, []).append(value)
    return {**{name: mean_of(values) for name, values in columns.items()}, **reading.scores}


def without_repeats(items: Iterable[BenchmarkItem]) -> tuple[tuple[BenchmarkItem, ...], int]:
    """The first of each item, and how many came again."""
    first: dict[str, BenchmarkItem] = {}
    again = 0
    for item in items:
        if item.id in first:
            again += 1
        else:
            first[item.id] = item
    return tuple(first.values()), again
