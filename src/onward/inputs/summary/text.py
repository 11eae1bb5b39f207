"""Summaries as text: lines for a terminal, Markdown, CSV, and plain data for JSON. Pure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from onward.inputs.summary.confidence import CONFIDENCE, SIGNIFICANT, MeanDifference
from onward.inputs.summary.differences import Difference, Differences
from onward.inputs.summary.table import BenchmarkSummary, SummaryCell, SummaryColumn, SummaryRow
from onward.model.plain_data import value_to_json

BETTER, WORSE = "↑", "↓"


def number(mean: float, half: float | None) -> str:
    """As many digits as the interval leaves worth reading: 0.912 ± 0.013."""
    if half is None or not math.isfinite(half) or half <= 0:
        return f"{mean:.4g}" + (" ± 0" if half == 0 else "")
    places = max(0, 1 - math.floor(math.log10(half)))
    if places > 8 or abs(mean) >= 1e9:
        return f"{mean:.6g} ± {half:.2g}"
    return f"{mean:.{places}f} ± {half:.{places}f}"


def cell_text(cell: SummaryCell) -> str:
    """What stands in a cell, without its marks."""
    if cell.tasks == 0:
        return "–"
    part = "" if cell.whole else f"{cell.done}/{cell.tasks}"
    lacks = " ".join(filter(None, (part, "failed" if cell.failed else "")))
    if cell.mean is None:
        return lacks if cell.failed or (cell.done and not cell.whole) else "no score" if cell.whole else "…"
    return f"{number(cell.mean, cell.half)} ({lacks})" if lacks else number(cell.mean, cell.half)


def mark(cell: SummaryCell, column: SummaryColumn) -> str:
    """Whether it is better or worse than the baseline by more than chance."""
    if not cell.against or not cell.against.significant:
        return ""
    return BETTER if column.beats(cell.against.difference, 0.0) else WORSE


def column_headings(summary: BenchmarkSummary) -> list[str]:
    return [f"{column.benchmark}{'' if column.metric == 'score' else f' {column.metric}'}" for column in summary.columns]


def table_lines(summary: BenchmarkSummary) -> list[tuple[str, ...]]:
    """A row each, for a terminal: the best with a star."""
    return [(_name(row), *(_plain(row.cells[column.benchmark], column) for column in summary.columns)) for row in summary.rows]


def legend(summary: BenchmarkSummary) -> list[str]:
    """What the marks mean, and what failed or is lacking."""
    failed = [f"{row.key} {name}: {cell.reason}" for row in summary.rows for name, cell in row.cells.items() if cell.failed]
    more = [f"and {len(failed) - 10} more that failed"] if len(failed) > 10 else []
    return [*marks(summary), *failed[:10], *more, *summary.notes]


def marks(summary: BenchmarkSummary) -> list[str]:
    """What the marks mean, as far as they are there."""
    cells = [cell for row in summary.rows for cell in row.cells.values()]
    lines = []
    if any(cell.half is not None for cell in cells):
        overs = sorted({cell.over for cell in cells if cell.over})
        lines.append(f"± is half the {CONFIDENCE:.0%} interval by Student's t, over {' or '.join(_over(over) for over in overs)}")
    if any(cell.best for cell in cells):
        lines.append("* is the best of its column")
    if summary.baseline:
        tests = sorted({cell.against.test for cell in cells if cell.against and cell.against.test})
        words = " or ".join("pairs of the same shard and seed" if test == "paired" else "Welch's test" for test in tests)
        by = f" by {words}, p < {SIGNIFICANT} for all comparisons of a column (Holm)" if tests else ""
        lines.append(f"{BETTER} {WORSE} are better and worse than {summary.baseline}{by}")
    return lines


def markdown(summary: BenchmarkSummary) -> str:
    columns = [*column_headings(summary)]
    table = [f"| {' | '.join(_cell(word) for word in ['', *columns])} |", f"|---|{'---:|' * len(columns)}"]
    for row in summary.rows:
        cells = (row.cells[column.benchmark] for column in summary.columns)
        words = [_bold(cell, column) for cell, column in zip(cells, summary.columns, strict=True)]
        table.append(f"| {' | '.join([_cell(_name(row)), *words])} |")
    notes = [f"- {_cell(line).replace('* is the', 'bold is the')}" for line in legend(summary)]
    return "\n".join([f"### {_cell(summary.name)}", "", *table, "", *notes, ""])


def as_csv(summary: BenchmarkSummary) -> str:
    """A line for each cell, with all that is known of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    named = (
        "of",
        "step",
        "benchmark",
        "metric",
        "mean",
        "half_interval",
        "over",
        "tasks_done",
        "tasks",
        "tasks_failed",
        "items",
        "seconds",
    )
    writer.writerow((*named, "cost", "best", "difference", "difference_half_interval", "p", "test", "reason"))
    for row in summary.rows:
        for column in summary.columns:
            cell = row.cells[column.benchmark]
            if cell.tasks:
                found = cell.against or MeanDifference(difference=math.nan)
                writer.writerow([*map(_guarded, _values(row, column, cell)), *map(_guarded, _compared(found)), _guarded(cell.reason)])
    return out.getvalue()


def as_json(summary: BenchmarkSummary) -> dict[str, Any]:
    data = value_to_json(summary)
    for row, plain in zip(summary.rows, data["rows"], strict=True):
        plain["key"] = row.key
        for name, cell in row.cells.items():
            measured = [{"seed": seed, "shard": shard, **vars(one)} for (seed, shard), one in cell.measured.items()]
            plain["cells"][name] |= {"measured": measured, "whole": cell.whole, "text": cell_text(cell)}
    return {"schema": 1, **data}


# ── two pipelines ─────────────────────────────────────────────────────────────


def difference_lines(found: Differences) -> list[tuple[str, ...]]:
    return [(row.label, row.column.benchmark, cell_text(row.first), cell_text(row.second), *_of(row)) for row in found.rows]


def differences_markdown(found: Differences) -> str:
    head = ("", "benchmark", found.first, found.second, "difference", "p", "")
    table = [f"| {' | '.join(map(_cell, head))} |", f"|---|---|{'---:|' * 4}---|"]
    table += [f"| {' | '.join(map(_cell, line))} |" for line in difference_lines(found)]
    return "\n".join([*table, "", *(f"- {_cell(note)}" for note in found.notes), ""])


def differences_json(found: Differences) -> dict[str, Any]:
    def plain(cell: SummaryCell) -> dict[str, Any]:
        return {"mean": cell.mean, "half": cell.half, "done": cell.done, "tasks": cell.tasks}

    rows = [
        {
            "label": row.label,
            "benchmark": row.column.benchmark,
            "first": plain(row.first),
            "second": plain(row.second),
            "better": row.better,
            **(vars(row.found) if row.found else {}),
        }
        for row in found.rows
    ]
    return {"schema": 1, "first": found.first, "second": found.second, "rows": rows, "notes": list(found.notes)}


def _of(row: Difference) -> tuple[str, str, str]:
    if row.found is None:
        return "–", "–", "incomplete"
    p = "–" if row.found.p is None else f"{row.found.p:.2g} ({row.found.test})"
    words = {True: "better", False: "worse", None: ""}
    sign = "+" if row.found.difference > 0 else ""
    return f"{sign}{number(row.found.difference, row.found.half)}", p, words[row.better]


# ── inside ────────────────────────────────────────────────────────────────────


def _name(row: SummaryRow) -> str:
    return f"{row.label} (baseline)" if row.baseline else row.label


def _plain(cell: SummaryCell, column: SummaryColumn) -> str:
    return " ".join(filter(None, (cell_text(cell) + ("*" if cell.best else ""), mark(cell, column))))


def _bold(cell: SummaryCell, column: SummaryColumn) -> str:
    words = _cell(cell_text(cell))
    return " ".join(filter(None, (f"**{words}**" if cell.best else words, mark(cell, column))))


def _over(over: str) -> str:
    return "tasks (shards and seeds)" if over == "tasks" else "the items of all shards"


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def _values(row: SummaryRow, column: SummaryColumn, cell: SummaryCell) -> Sequence[object]:
    first = (row.of, row.step, column.benchmark, column.metric, cell.mean, cell.half, cell.over)
    return (*first, cell.done, cell.tasks, cell.failed, cell.items, round(cell.seconds, 3), cell.cost, cell.best)


def _compared(found: MeanDifference) -> Sequence[object]:
    known = not math.isnan(found.difference)
    return (found.difference if known else None, found.half, found.p, found.test)


def _guarded(value: object) -> object:
    """What a spreadsheet would take for a formula is text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
