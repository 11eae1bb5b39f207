"""Series as charts: which axis, how smooth, whose line. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from onward.tracker.series.stitch import SYSTEM_PREFIX
from onward.tui.drawing.chart import ChartLine, chart, smoothed
from onward.tui.drawing.text import Block, Line, cut, fit, number, plain, short, span, titled
from onward.tui.sources.interface import ChartSeries
from onward.tui.state import AXES, SMOOTH, ScreenData, ScreenState

_LETTERS = "abcdefgh"


def plot(view: ScreenState, key: str, board: ScreenData, names: dict[str, str], *, width: int, height: int, focus: bool = False) -> Block:
    """A title, the lines, and where there are several a legend."""
    mine = [one for one in board.series if one.key == key and one.run in names]
    order = [run for run in names if any(one.run == run for one in mine)]
    mine.sort(key=lambda one: order.index(one.run))
    legend = _legend(mine, names, width) if len(mine) > 1 and height > 6 else []
    curves: list[ChartLine] = []
    for index, one in enumerate(mine):
        curves += _curves(view, one, f"line{index}", _LETTERS[index] if len(mine) > 1 else "")
    marks = [float(step) for step in mine[0].legs] if len(mine) == 1 and view.axis == 0 else []
    room = height - 1 - len(legend)
    shown = chart(curves, width=width, height=room, log=view.log_axis, words=_words(view, key), marks=marks)
    return [titled(_title(view, key, mine, width, reading=board.reading), width, focus=focus), *legend, *shown]


def _title(view: ScreenState, key: str, mine: Sequence[ChartSeries], width: int, *, reading: bool) -> str:
    """Of a long key the end: it says more than its beginning."""
    known = list(mine[0].highs[-1:]) if len(mine) == 1 else []
    room = max(width - 16, 12)
    name = key if len(key) <= room else f"…{key[len(key) - room + 1 :]}"
    parts = [name + "".join(f" = {number(value)}" for value in known)]
    parts += ["log" if view.log_axis else "", f"by {AXES[view.axis]}" if view.axis else ""]
    parts += [f"smooth {SMOOTH[view.smooth]}" if view.smooth else ""]
    if reading:
        parts.insert(0, "reading …")
    if any(one.points > len(one.steps) for one in mine):
        parts.append(f"{sum(len(one.steps) for one in mine)} of {short(sum(one.points for one in mine))} points")
    return " · ".join(part for part in parts if part)


def _legend(mine: Sequence[ChartSeries], names: dict[str, str], width: int) -> list[Line]:
    room = max(width // max(min(len(mine), 4), 1) - 2, 12)
    spans = []
    for index, one in enumerate(mine):
        last = number(one.highs[-1]) if one.highs else "–"
        words = f"{_LETTERS[index]} {fit(plain(names[one.run]), max(room - len(last) - 4, 4)).rstrip()} {last}"
        spans.append((fit(words, room) + "  ", f"line{index}"))
    rows = [spans[n : n + 4] for n in range(0, len(spans), 4)]
    return [cut(row, width) for row in rows]


def _curves(view: ScreenState, one: ChartSeries, style: str, letter: str) -> list[ChartLine]:
    """The raw line faint below the smooth one."""
    xs = _xs(view, one)
    weight = SMOOTH[view.smooth]
    if not weight:
        return [ChartLine(xs=xs, lows=one.lows, highs=one.highs, style=style, letter=letter)]
    means = smoothed([(low + high) / 2 for low, high in zip(one.lows, one.highs, strict=True)], weight)
    return [
        ChartLine(xs=xs, lows=one.lows, highs=one.highs, style="dim"),
        ChartLine(xs=xs, lows=means, highs=means, style=style, letter=letter),
    ]


def _xs(view: ScreenState, one: ChartSeries) -> Sequence[float]:
    if view.axis == 0 or len(one.times) != len(one.steps):
        return one.steps
    if view.axis == 2:
        return one.times
    began = one.began if one.began is not None else min(one.times, default=0.0)
    return [at - began for at in one.times]


def _words(view: ScreenState, key: str) -> Callable[[float], str]:
    """The steps of what machines are sampled for are unix seconds."""
    steps = _moment if key.startswith(SYSTEM_PREFIX) else lambda x: f"{x:.0f}"
    return (steps, span, _moment)[view.axis]


def _moment(at: float) -> str:
    try:
        return time.strftime("%m-%d %H:%M:%S", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "–"
