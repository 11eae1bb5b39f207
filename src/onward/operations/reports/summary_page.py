"""A pipeline's summary as one page that needs nothing else: the table, scores over steps, scores against cost."""

from __future__ import annotations

from html import escape

from onward.inputs.summary.table import BenchmarkSummary, SummaryCell, SummaryColumn, SummaryRow
from onward.inputs.summary.text import cell_text, column_headings, legend, mark
from onward.operations.reports.page_parts import isolated_text, line_key, section, table, whole_page
from onward.operations.reports.summary_charts import score_against_cost, score_over_steps


def summary_page(summary: BenchmarkSummary, *, now: float) -> str:
    numbers = {of: number for number, of in enumerate(dict.fromkeys(row.of for row in summary.rows))}
    parts = [
        section("Results", _table(summary, numbers)),
        section(
            "Over training", _figures(summary, numbers, {one.benchmark: score_over_steps(summary, one, numbers) for one in summary.columns})
        ),
        section(
            f"Against {escape(summary.cost)}",
            _figures(summary, numbers, {one.benchmark: score_against_cost(summary, one, numbers) for one in summary.columns}),
        ),
    ]
    return whole_page(summary.name, parts, now=now)


def _table(summary: BenchmarkSummary, numbers: dict[str, int]) -> str:
    if not summary.rows:
        return "<p>No benchmark results yet.</p>"
    rows = []
    for row in summary.rows:
        cells = "".join(_cell(row, row.cells[column.benchmark], column) for column in summary.columns)
        base = " <small>baseline</small>" if row.baseline else ""
        rows.append(f"<tr><th scope=row>{line_key(numbers[row.of])} {isolated_text(row.label)}{base}</th>{cells}</tr>")
    notes = "".join(f"<li>{isolated_text(line.replace('* is the', 'bold is the'))}</li>" for line in legend(summary))
    return table(("", *column_headings(summary)), rows) + (f"<ul>{notes}</ul>" if notes else "")


def _cell(row: SummaryRow, cell: SummaryCell, column: SummaryColumn) -> str:
    words = escape(cell_text(cell))
    strong = f"<b>{words}</b>" if cell.best else words
    sign = mark(cell, column)
    state = ' class="state failed"' if cell.failed else ""
    title = f"{cell.done} of {cell.tasks} tasks, {cell.items} items, {cell.seconds:.0f} s"
    if cell.against and cell.against.p is not None:
        title += f"; {cell.against.difference:+.4g} against the baseline, p {cell.against.p:.2g} ({cell.against.test})"
    if cell.reason:
        title += f"; {cell.reason}"
    return f'<td{state} title="{escape(title)}">{strong}{f" {sign}" if sign else ""}</td>'


def _figures(summary: BenchmarkSummary, numbers: dict[str, int], drawn: dict[str, str]) -> str:
    figures = []
    for column in summary.columns:
        if drawn[column.benchmark]:
            sense = "higher is better" if column.better == "max" else "lower is better"
            caption = f"<figcaption>{isolated_text(column.benchmark)} <small>{isolated_text(column.metric)}, {sense}</small></figcaption>"
            figures.append(f"<figure>{caption}{drawn[column.benchmark]}</figure>")
    lines = "".join(f"<li>{line_key(number)} {isolated_text(of)}</li>" for of, number in numbers.items())
    return f'<div class="grid-of-charts">{"".join(figures)}</div><figure><ul>{lines}</ul></figure>' if figures else ""
