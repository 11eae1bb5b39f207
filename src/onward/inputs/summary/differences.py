"""Two pipelines side by side: what the one measured less what the other did. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from onward.errors import InvalidInput
from onward.inputs.summary.confidence import MeanDifference, compare_means, holm
from onward.inputs.summary.table import BenchmarkSummary, SummaryCell, SummaryColumn, SummaryRow


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One benchmark of one row: `second` less `first`."""

    label: str
    column: SummaryColumn
    first: SummaryCell
    second: SummaryCell
    found: MeanDifference | None  # None where one of them is not whole

    @property
    def better(self) -> bool | None:
        """Significantly so; False: significantly worse."""
        if not self.found or not self.found.significant:
            return None
        return self.column.beats(self.found.difference, 0.0)


@dataclass(frozen=True, kw_only=True)
class Differences:
    first: str
    second: str
    rows: tuple[Difference, ...]
    notes: tuple[str, ...] = ()


def differences(first: BenchmarkSummary, second: BenchmarkSummary) -> Differences:
    """Rows of the same name and step; where there are none, the newest checkpoints of each name."""
    columns = [column for column in second.columns if any(column.benchmark == other.benchmark for other in first.columns)]
    pairs, notes = _pairs(first, second)
    if not columns or not pairs:
        what = "no benchmark" if not columns else "no training or model"
        raise InvalidInput(f"{first.name} and {second.name} have {what} in common", hint="compare pipelines of the same file")
    found = [_difference(a, b, column) for a, b in pairs for column in columns if a.cells[column.benchmark].tasks]
    only = {one.benchmark for one in first.columns} ^ {one.benchmark for one in second.columns}
    if only:
        notes.append(f"only one of them has {', '.join(sorted(only))}")
    return Differences(first=first.name, second=second.name, rows=tuple(_raised(found)), notes=tuple(notes))


def _pairs(first: BenchmarkSummary, second: BenchmarkSummary) -> tuple[list[tuple[SummaryRow, SummaryRow]], list[str]]:
    by_key = {row.key: row for row in first.rows}
    pairs = [(by_key[row.key], row) for row in second.rows if row.key in by_key]
    if pairs:
        alone = sorted({row.key for row in (*first.rows, *second.rows)} - {row.key for _, row in pairs})
        return pairs, [f"only one of them has {', '.join(alone[:6])}{' …' if len(alone) > 6 else ''}"] if alone else []
    newest = {row.of: row for row in first.rows}
    pairs = [(newest[of], row) for of, row in {row.of: row for row in second.rows}.items() if of in newest]
    return pairs, ["they have no step in common: the newest checkpoints are compared"] if pairs else []


def _difference(first: SummaryRow, second: SummaryRow, column: SummaryColumn) -> Difference:
    a, b = first.cells[column.benchmark], second.cells[column.benchmark]
    whole = a.whole and b.whole and a.measured and b.measured
    label = second.label if first.key == second.key else f"{second.label} / {first.label}"
    return Difference(label=label, column=column, first=a, second=b, found=compare_means(b.measured, a.measured) if whole else None)


def _raised(rows: Iterable[Difference]) -> list[Difference]:
    """For the number of comparisons that are shown."""
    numbered = {str(number): row for number, row in enumerate(rows)}
    raised = holm({key: row.found.p for key, row in numbered.items() if row.found and row.found.p is not None})
    return [replace(row, found=replace(row.found, p=raised[key])) if key in raised and row.found else row for key, row in numbered.items()]
