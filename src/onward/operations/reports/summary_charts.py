"""Charts of a summary as SVG: a score over the steps of trainings, and a score against what it costs, with the pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from onward.inputs.summary.table import BenchmarkSummary, SummaryColumn
from onward.operations.reports.subjects import ReportCurve
from onward.operations.reports.svg_charts import COLOURS, ChartScale, chart, short_number

_W, _H = 560, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 8, 36


@dataclass(frozen=True, kw_only=True)
class ChartDot:
    number: int  # of the training or model, for its colour
    label: str
    cost: float
    score: float


def score_over_steps(summary: BenchmarkSummary, column: SummaryColumn, numbers: dict[str, int]) -> str:
    """A line for each training; the band is the interval. Empty where no training has two checkpoints measured."""
    curves = []
    for of, number in numbers.items():
        cells = [(row.step, row.cells[column.benchmark]) for row in summary.rows if row.of == of and row.step is not None]
        held = sorted((step, cell.mean, cell.half or 0.0) for step, cell in cells if cell.mean is not None)
        if len(held) > 1:
            curve = ReportCurve(
                steps=[step for step, _, _ in held],
                means=[mean for _, mean, _ in held],
                lows=[mean - half for _, mean, half in held],
                highs=[mean + half for _, mean, half in held],
                points=len(held),
                exact=False,
            )
            curves.append((number, of, curve))
    return chart(column.benchmark, curves) if curves else ""


def pareto_front(dots: Sequence[ChartDot], column: SummaryColumn) -> list[ChartDot]:
    """Those that none other beats in both score and cost, by cost."""
    kept: list[ChartDot] = []
    for dot in sorted(dots, key=lambda dot: (dot.cost, dot.score if column.better == "min" else -dot.score)):
        if not kept or column.beats(dot.score, kept[-1].score):
            kept.append(dot)
    return kept


def score_against_cost(summary: BenchmarkSummary, column: SummaryColumn, numbers: dict[str, int]) -> str:
    """Score against cost, a dot a row. Empty where there are fewer than two."""
    dots = [
        ChartDot(number=numbers[row.of], label=row.label, cost=cell.cost, score=cell.mean)
        for row in summary.rows
        if (cell := row.cells[column.benchmark]).whole and cell.mean is not None and cell.cost is not None
    ]
    if len(dots) < 2:
        return ""
    across = ChartScale(*_with_room([dot.cost for dot in dots]), _LEFT, _W - _RIGHT)
    up = ChartScale(*_with_room([dot.score for dot in dots]), _H - _BOTTOM, _TOP)
    best = pareto_front(dots, column)
    title = f"{column.benchmark} against {summary.cost}; nothing beats " + ", ".join(dot.label for dot in best[:8])
    parts = [f'<svg class="chart" viewBox="0 0 {_W} {_H}" role="img" aria-label="{escape(title)}">']
    for value in up.ticks():
        y = up(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short_number(value)}</text>')
    parts += [
        f'<text class="tick" x="{across(value):.1f}" y="{_H - 20}" text-anchor="middle">{short_number(value)}</text>'
        for value in across.ticks()
    ]
    parts.append(f'<text class="tick" x="{_W - _RIGHT}" y="{_H - 4}" text-anchor="end">{escape(summary.cost)}</text>')
    points = " ".join(f"{across(dot.cost):.1f},{up(dot.score):.1f}" for dot in best)
    parts.append(f'<polyline class="grid front" fill="none" stroke-width="1.5" points="{points}"/>')
    for dot in dots:
        words = f"{dot.label}: {short_number(dot.score)} for {short_number(dot.cost)} {summary.cost}"
        circle = f'cx="{across(dot.cost):.1f}" cy="{up(dot.score):.1f}" r="{5 if dot in best else 3.5}"'
        parts.append(f'<circle class="dot c{dot.number % COLOURS}" {circle}><title>{escape(words)}</title></circle>')
    return "".join([*parts, "</svg>"])


def _with_room(values: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest, with room for the dots themselves."""
    low, high = min(values), max(values)
    return low - (high - low) / 20, high + (high - low) / 20
