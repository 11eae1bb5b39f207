"""A chart in plain text: values in, lines out. Pure.

Braille has eight dots a character, two across and four down, so a chart of 40×10 characters has 80×40 points. Where a value stands for
many, its lowest and highest are both drawn: no spike is lost. Lines are told apart by colour, and by a letter where they end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onward.tui.drawing.text import Block, Line, Span, fit, line, number

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LABEL = 8  # cells before the axis
_HUGE = 1e300  # beyond it a difference may be infinite
_SPARKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, kw_only=True)
class ChartLine:
    """`lows` and `highs` are the same where each value is one point. What is not finite is a gap."""

    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    style: str = ""
    letter: str = ""  # written where it ends


def chart(
    curves: Sequence[ChartLine],
    *,
    width: int,
    height: int,
    log: bool = False,
    words: Callable[[float], str] = number,
    marks: Sequence[float] = (),
    empty: str = "no points yet",
) -> Block:
    """`marks`: x values with a thin upright line, such as where legs begin. `words` are for x values."""
    across, down = max(width - _LABEL - 1, 1), max(height - 1, 1)
    drawn = [_usable(curve, log) for curve in curves]
    points = [point for curve in drawn for point in curve]
    if not points or width < _LABEL + 4 or height < 3:
        return _message(empty if not any(len(curve.xs) for curve in curves) else _nothing_finite(log), width, height)
    left, right = _widened(min(x for x, _, _ in points), max(x for x, _, _ in points))
    bottom, top = _widened(min(low for _, low, _ in points), max(high for _, _, high in points))
    canvas = _Canvas(across, down)
    for index, (curve, found) in enumerate(zip(curves, drawn, strict=True)):
        scaled = [_place(canvas, x, low, high, left, right, bottom, top) for x, low, high in found]
        canvas.draw(scaled, index)
        if curve.letter and scaled:
            canvas.write(scaled[-1], curve.letter, index)
    for mark in marks:
        if left < mark < right:
            canvas.upright(round((mark - left) / (right - left) * (across - 1)))
    rows = canvas.rows([curve.style for curve in curves])
    scale = [10 ** min(value, 308.0) if log else value for value in (top, (top + bottom) / 2, bottom)]
    labels = {0: scale[0], down // 2: scale[1], down - 1: scale[2]} if down > 2 else {0: scale[0], down - 1: scale[2]}
    body = [_row(number(labels[y]) if y in labels else "", "┤" if y in labels else "│", row) for y, row in enumerate(rows)]
    return [*body, _axis(words(left), words(right), across)][:height]


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The last of them that fit, one character each; a gap for what is not finite."""
    shown = [_drawable(value) if value is not None and math.isfinite(value) else None for value in values[-width:]]
    known = [value for value in shown if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    return "".join(" " if v is None else _SPARKS[3 if high == low else min(int((v - low) / (high - low) * 8), 7)] for v in shown)


def smoothed(values: Sequence[float], weight: float) -> list[float]:
    """An exponential mean, as trackers have it: the first values are not drawn towards zero. Gaps stay gaps."""
    kept, weights, found = 0.0, 0.0, []
    for value in values:
        if not math.isfinite(value):
            found.append(math.nan)
            continue
        kept, weights = kept * weight + value * (1 - weight), weights * weight + (1 - weight)
        found.append(kept / weights)
    return found


class _Canvas:
    def __init__(self, across: int, down: int) -> None:
        self.across, self.down = across, down
        self._dots = [[0] * across for _ in range(down)]
        self._owner = [[-1] * across for _ in range(down)]
        self._letters: dict[tuple[int, int], str] = {}

    def draw(self, points: Sequence[tuple[int, int, int]], owner: int) -> None:
        before: tuple[int, int, int] | None = None
        for x, low, high in points:
            self._column(x, low, high, owner)
            if before is not None and x > before[0]:
                self._join(before[0], (before[1] + before[2]) / 2, x, (low + high) / 2, owner)
            before = (x, low, high)

    def _join(self, x0: int, y0: float, x1: int, y1: float, owner: int) -> None:
        """One dot a column where that is enough, so that a slope stays thin."""
        last = round(y0)
        for x in range(x0 + 1, x1 + 1):
            y = round(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
            self._column(x, y if abs(y - last) <= 1 else last + (1 if y > last else -1), y, owner)
            last = y

    def _column(self, x: int, low: int, high: int, owner: int) -> None:
        for y in range(min(low, high), max(low, high) + 1):
            row, column = y // 4, x // 2
            if 0 <= row < self.down and 0 <= column < self.across:
                self._dots[row][column] |= _DOTS[y % 4][x % 2]
                self._owner[row][column] = owner

    def write(self, area: tuple[int, int, int], letter: str, owner: int) -> None:
        x, low, high = area
        column, row = min(x // 2, self.across - 1), min(max((low + high) // 8, 0), self.down - 1)
        while (row, column) in self._letters and row + 1 < self.down:
            row += 1
        self._letters[row, column] = letter
        self._owner[row][column] = owner

    def upright(self, column: int) -> None:
        for row in range(self.down):
            if not self._dots[row][column] and (row, column) not in self._letters:
                self._letters[row, column] = "┊"

    def rows(self, styles: Sequence[str]) -> list[list[Span]]:
        return [self._spans(y, styles) for y in range(self.down)]

    def _spans(self, y: int, styles: Sequence[str]) -> list[Span]:
        spans: list[Span] = []
        for x in range(self.across):
            dots, owner, letter = self._dots[y][x], self._owner[y][x], self._letters.get((y, x))
            char = letter or (chr(0x2800 + dots) if dots else " ")
            style = styles[owner] if owner >= 0 else "dim"
            if spans and spans[-1][1] == style:
                spans[-1] = (spans[-1][0] + char, style)
            else:
                spans.append((char, style))
        return spans


def _usable(curve: ChartLine, log: bool) -> list[tuple[float, float, float]]:
    found = []
    for x, low, high in zip(curve.xs, curve.lows, curve.highs, strict=True):
        if not (math.isfinite(x) and math.isfinite(low) and math.isfinite(high)) or (log and high <= 0):
            continue
        y = (math.log10(low if low > 0 else high), math.log10(high)) if log else (_drawable(low), _drawable(high))
        found.append((_drawable(x), *y))
    return found


def _drawable(value: float) -> float:
    """Within what differences can be told of."""
    return max(-_HUGE, min(value, _HUGE))


def _place(
    canvas: _Canvas, x: float, low: float, high: float, left: float, right: float, bottom: float, top: float
) -> tuple[int, int, int]:
    wide, tall = canvas.across * 2 - 1, canvas.down * 4 - 1
    return (
        round((x - left) / (right - left) * wide),
        round((top - high) / (top - bottom) * tall),
        round((top - low) / (top - bottom) * tall),
    )


def _widened(low: float, high: float) -> tuple[float, float]:
    """A range that is not empty."""
    if high - low > abs(high) * 1e-12:
        return low, high
    room = abs(high) * 0.05 or 0.5
    return low - room, high + room


def _row(label: str, tick: str, spans: Sequence[Span]) -> Line:
    return ((f"{label:>{_LABEL}}", "dim"), (tick, "dim"), *spans)


def _axis(first: str, last: str, across: int) -> Line:
    room = max(across - len(last), 0)
    return line(" " * (_LABEL + 1) + fit(first, room) + last[:across], "dim")


def _nothing_finite(log: bool) -> str:
    return "nothing above zero to draw on a log axis (y)" if log else "only NaN and infinities so far"


def _message(words: str, width: int, height: int) -> Block:
    middle = max(height // 2, 0)
    return [line(fit(f"  {words}" if y == middle else "", width), "dim") for y in range(height)]
