"""Charts as SVG, drawn here so that a report needs no script: lines over a band from lowest to highest; a run as a bar of its legs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from onward.model.analysis.timeline import Timeline
from onward.model.quantity import counted, duration_text
from onward.operations.reports.subjects import ReportCurve

COLOURS = 8
DASHES = ("", "7 3", "2 3", "9 3 2 3")
_W, _H = 560, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 8, 24
_FINE = 10.0  # how many times the highest is the lowest, from which a log axis is drawn


def line_style(number: int) -> tuple[int, str]:
    """Colour and dash of the nth run: dashes begin where colours end."""
    return number % COLOURS, DASHES[number // COLOURS % len(DASHES)]


def chart(title: str, curves: Sequence[tuple[int, str, ReportCurve]]) -> str:
    """`curves`: number of the run, its name, its line. A log axis where values are positive and span thousands."""
    finite = [v for _, _, curve in curves for side in (curve.lows, curve.highs) for v in side if v is not None]
    steps = [step for _, _, curve in curves for step in curve.steps]
    if not finite or not steps:
        return ""
    low, high = min(finite), max(finite)
    log = low > 0 and high / low > _FINE**3
    across = ChartScale(min(steps), max(steps), _LEFT, _W - _RIGHT)
    up = ChartScale(low, high, _H - _BOTTOM, _TOP, log=log)
    title_text = f"{title}{', log axis' if log else ''}: " + "; ".join(f"{name} ends at {_end(curve)}" for _, name, curve in curves[:8])
    parts = [f'<svg class="chart" viewBox="0 0 {_W} {_H}" role="img" aria-label="{escape(title_text)}">']
    for value in up.ticks():
        y = up(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short_number(value)}</text>')
    for value in across.ticks():
        x = across(value)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{_H - 6}" text-anchor="middle">{short_number(value)}</text>')
    for number, name, curve in curves:
        parts += _line(number, name, curve, across, up)
    return "".join([*parts, "</svg>"])


def timeline_bar(drawn: Timeline) -> str:
    """A run over time: waits, legs, stalls; checkpoints as ticks."""
    length = max(drawn.end - drawn.start, 1.0)

    def at(moment: float) -> float:
        return 4 + (_W * 2 - 8) * min(max((moment - drawn.start) / length, 0.0), 1.0)

    parts = [f'<svg class="bar" viewBox="0 0 {_W * 2} 40" role="img" aria-label="{escape(_told(drawn))}">']
    for segment in drawn.segments:
        x, end = at(segment.start), at(segment.end if segment.end is not None else drawn.end)
        kind = f"{segment.kind} {segment.state}".strip()
        words = f"{segment.words}, {duration_text((segment.end if segment.end is not None else drawn.end) - segment.start)}"
        top, tall = (10, 20) if segment.kind == "leg" else (16, 8)
        box = f'x="{x:.1f}" y="{top}" width="{max(end - x, 1):.1f}" height="{tall}"'
        parts.append(f'<rect class="{escape(kind)}" {box}><title>{escape(words)}</title></rect>')
    for mark in drawn.marks:
        x = at(mark.at)
        parts.append(
            f'<line class="mark {escape(mark.kind)}" x1="{x:.1f}" x2="{x:.1f}" y1="6" y2="34"><title>{escape(mark.words)}</title></line>'
        )
    return "".join([*parts, "</svg>"])


def short_number(value: float) -> str:
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


class ChartScale:
    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False) -> None:
        if low == high:
            low, high = low - abs(low) * 0.1 - 0.5 * (low == 0), high + abs(high) * 0.1 + 0.5 * (high == 0)
        self._log = log
        self._low, self._high = (math.log10(low), math.log10(high)) if log else (low, high)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        shown = math.log10(value) if self._log else value
        return self._start + (self._end - self._start) * (shown - self._low) / (self._high - self._low)

    def ticks(self) -> list[float]:
        """A handful of round numbers."""
        if self._log:
            powers = range(math.ceil(self._low), math.floor(self._high) + 1)
            return [10.0**power for power in powers][:: max(1, len(powers) // 5)]
        rough = (self._high - self._low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
        first = math.ceil(self._low / step)
        return [number * step for number in range(first, math.floor(self._high / step) + 1)]


def _line(number: int, name: str, curve: ReportCurve, across: ChartScale, up: ChartScale) -> list[str]:
    colour, dash = line_style(number)
    parts = []
    for piece in _pieces(curve):
        if not curve.exact and len(piece) > 1:
            edge = [(x, high) for x, _, _, high in piece] + [(x, low) for x, _, low, _ in reversed(piece)]
            parts.append(f'<polygon class="band c{colour}" points="{_points(edge, across, up)}"/>')
        line = [(x, mean) for x, mean, _, _ in piece]
        if len(line) == 1:
            parts.append(f'<circle class="dot c{colour}" cx="{across(line[0][0]):.1f}" cy="{up(line[0][1]):.1f}" r="2"/>')
        else:
            dashed = f' stroke-dasharray="{dash}"' if dash else ""
            parts.append(
                f'<polyline class="line c{colour}"{dashed} points="{_points(line, across, up)}"><title>{escape(name)}</title></polyline>'
            )
    return parts


def _pieces(curve: ReportCurve) -> list[list[tuple[float, float, float, float]]]:
    """Where a bucket has no finite value the line is broken."""
    pieces: list[list[tuple[float, float, float, float]]] = [[]]
    for step, mean, low, high in zip(curve.steps, curve.means, curve.lows, curve.highs, strict=True):
        if mean is None or low is None or high is None:
            pieces.append([])
        else:
            pieces[-1].append((step, mean, low, high))
    return [piece for piece in pieces if piece]


def _points(pairs: Sequence[tuple[float, float]], across: ChartScale, up: ChartScale) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in pairs)


def _end(curve: ReportCurve) -> str:
    last = next((mean for mean in reversed(curve.means) if mean is not None), None)
    return "no finite values" if last is None else short_number(last)


def _told(drawn: Timeline) -> str:
    legs = sum(1 for segment in drawn.segments if segment.kind == "leg")
    return f"{counted(legs, 'leg')}, {counted(drawn.checkpoints, 'checkpoint')} in {duration_text(drawn.end - drawn.start)}"
