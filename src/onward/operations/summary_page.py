"""A pipeline's summary as one page that needs nothing else: the table, scores over steps, scores against cost."""

from __future__ import annotations

from html import escape

from onward.operations.report_parts import line_key, section, table, text, whole
from onward.operations.summary_chart import over_steps, pareto
from onward.pipelines.summary_table import Cell, Column, Row, Summary
from onward.pipelines.summary_text import heads, legend, mark, said


def summary_page(summary: Summary, *, now: float) -> str:
    numbers = {of: number for number, of in enumerate(dict.fromkeys(row.of for row in summary.rows))}
    parts = [
        section("Results", _table(summary, numbers)),
        section("Over training", _figures(summary, numbers, {one.benchmark: over_steps(summary, one, numbers) for one in summary.columns})),
        section(
            f"Against {escape(summary.cost)}",
            _figures(summary, numbers, {one.benchmark: pareto(summary, one, numbers) for one in summary.columns}),
        ),
    ]
    return whole(summary.name, parts, now=now)


def _table(summary: Summary, numbers: dict[str, int]) -> str:
    if not summary.rows:
        return "<p>Nothing is benchmarked yet.</p>"
    rows = []
    for row in summary.rows:
        cells = "".join(_cell(row, row.cells[column.benchmark], column) for column in summary.columns)
        base = " <small>baseline</small>" if row.baseline else ""
        rows.append(f"<tr><th scope=row>{line_key(numbers[row.of])} {text(row.label)}{base}</th>{cells}</tr>")
    notes = "".join(f"<li>{text(line.replace('* is the', 'bold is the'))}</li>" for line in legend(summary))
    return table(("", *heads(summary)), rows) + (f"<ul>{notes}</ul>" if notes else "")


def _cell(row: Row, cell: Cell, column: Column) -> str:
    words = escape(said(cell))
    strong = f"<b>{words}</b>" if cell.best else words
    sign = mark(cell, column)
    state = ' class="state failed"' if cell.failed else ""
    told = f"{cell.done} of {cell.tasks} tasks, {cell.items} items, {cell.seconds:.0f} s"
    if cell.against and cell.against.p is not None:
        told += f"; {cell.against.difference:+.4g} against the baseline, p {cell.against.p:.2g} ({cell.against.test})"
    if cell.reason:
        told += f"; {cell.reason}"
    return f'<td{state} title="{escape(told)}">{strong}{f" {sign}" if sign else ""}</td>'


def _figures(summary: Summary, numbers: dict[str, int], drawn: dict[str, str]) -> str:
    figures = []
    for column in summary.columns:
        if drawn[column.benchmark]:
            sense = "higher is better" if column.better == "max" else "lower is better"
            caption = f"<figcaption>{text(column.benchmark)} <small>{text(column.metric)}, {sense}</small></figcaption>"
            figures.append(f"<figure>{caption}{drawn[column.benchmark]}</figure>")
    lines = "".join(f"<li>{line_key(number)} {text(of)}</li>" for of, number in numbers.items())
    return f'<div class="grid-of-charts">{"".join(figures)}</div><figure><ul>{lines}</ul></figure>' if figures else ""
