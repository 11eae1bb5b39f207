"""The table of a summary: rows are checkpoints or models, columns are benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onward.inputs.summary.confidence import MeanDifference, Measurement, ShardAndSeed


@dataclass(frozen=True, kw_only=True)
class SummaryColumn:
    benchmark: str
    metric: str
    better: str  # max | min

    def beats(self, value: float, other: float) -> bool:
        return value < other if self.better == "min" else value > other


@dataclass(frozen=True, kw_only=True)
class SummaryCell:
    """One benchmark of one checkpoint, over its shards and seeds."""

    tasks: int
    done: int = 0
    failed: int = 0
    mean: float | None = None
    half: float | None = None  # of the 95 % interval
    over: str = ""  # tasks | items
    items: int = 0
    seconds: float = 0.0
    cost: float | None = None
    best: bool = False
    against: MeanDifference | None = None  # the baseline
    reason: str = ""  # of a task that failed
    measured: Mapping[ShardAndSeed, Measurement] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return self.tasks > 0 and self.done == self.tasks


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    of: str
    step: int | None
    label: str
    cells: Mapping[str, SummaryCell]
    baseline: bool = False

    @property
    def key(self) -> str:
        return self.of if self.step is None else f"{self.of}@{self.step}"


@dataclass(frozen=True, kw_only=True)
class BenchmarkSummary:
    name: str
    columns: tuple[SummaryColumn, ...]
    rows: tuple[SummaryRow, ...]
    baseline: str | None = None  # key of its row
    cost: str = "seconds"
    notes: tuple[str, ...] = ()

    def row(self, key: str) -> SummaryRow:
        return next(row for row in self.rows if row.key == key)
