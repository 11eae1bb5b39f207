"""What stands out in a summary: the best of each column, and what differs from the baseline by more than chance. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onward.errors import InvalidInput
from onward.inputs.summary.confidence import MeanDifference, compare_means, holm
from onward.inputs.summary.table import SummaryCell, SummaryColumn, SummaryRow


def with_best(rows: Sequence[SummaryRow], columns: Sequence[SummaryColumn]) -> list[SummaryRow]:
    """Among whole cells, and all that are equal to it; where none is worse nothing is said."""
    best: dict[str, set[str]] = {}
    for column in columns:
        whole = {row.key: mean for row in rows if (cell := row.cells[column.benchmark]).whole and (mean := cell.mean) is not None}
        top = (min if column.better == "min" else max)(whole.values(), default=None)
        found = {key for key, mean in whole.items() if mean == top}
        best[column.benchmark] = found if len(found) < len(whole) else set()
    return [replace(row, cells={name: replace(cell, best=row.key in best[name]) for name, cell in row.cells.items()}) for row in rows]


def baseline_of(rows: Sequence[SummaryRow], named: str) -> SummaryRow | None:
    """By the name of a stage or model, whose newest checkpoint it is, or by one checkpoint's own: train@300. None: not there yet."""
    name = named.partition("@")[0]
    if rows and all(row.of != name for row in rows):
        known = ", ".join(dict.fromkeys(row.of for row in rows))
        raise InvalidInput(f"the baseline {named} is not a benchmarked stage or model", hint=f"there are {known}")
    found = [row for row in rows if row.key == named or (row.of == named and "@" not in named)]
    return max(found, key=lambda row: row.step or 0, default=None)


def against(rows: Sequence[SummaryRow], base: SummaryRow, columns: Sequence[SummaryColumn]) -> list[SummaryRow]:
    """Every whole cell compared with the baseline's; what is significant, for the number of comparisons of its column."""
    found: dict[tuple[str, str], MeanDifference] = {}
    for column in columns:
        name = column.benchmark
        compared = {row.key: compared for row in rows if row.key != base.key and (compared := _compared(row.cells[name], base.cells[name]))}
        raised = holm({key: one.p for key, one in compared.items() if one.p is not None})
        found |= {(key, name): replace(one, p=raised.get(key)) for key, one in compared.items()}
    return [
        replace(
            row,
            baseline=row.key == base.key,
            cells={name: replace(cell, against=found.get((row.key, name))) for name, cell in row.cells.items()},
        )
        for row in rows
    ]


def _compared(cell: SummaryCell, base: SummaryCell) -> MeanDifference | None:
    comparable = cell.whole and base.whole and cell.measured and base.measured
    return compare_means(cell.measured, base.measured) if comparable else None
