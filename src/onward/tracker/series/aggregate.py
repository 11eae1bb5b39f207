"""Many curves as one: mean, deviation, lowest and highest over all runs of a group, on one grid. Pure.

A curve counts at a place of the grid where it has a point, or lies between two: one that logs every hundred steps does not flicker in and
out of the mean. Before its first point, after its last, and where it is NaN, it does not count; `counts` says how many did.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from onward.tracker.series.charts import Chart, Span

Value = float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """Columns side by side, in the order of `xs`."""

    xs: Sequence[float]
    lows: Sequence[Value]
    highs: Sequence[Value]
    means: Sequence[Value]


@dataclass(kw_only=True)
class Aggregate:
    xs: list[float]
    means: list[Value] = field(default_factory=list)
    deviations: list[Value] = field(default_factory=list)
    lows: list[Value] = field(default_factory=list)
    highs: list[Value] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


def xs_of(chart: Chart, x: str, other: Chart | None = None) -> list[Value]:
    """Where a chart's buckets lie: by `step`, by `wall` or `relative` time, or by another metric of the run (`other`) at the same steps."""
    match x:
        case "step":
            return list(chart.steps)
        case "wall":
            return list(chart.times)
        case "relative":
            start = chart.began if chart.began is not None else chart.times[0] if chart.times else 0.0
            return [time - start for time in chart.times]
        case _:
            return [None] * len(chart.steps) if other is None else _along(chart.steps, other)


def curve_of(chart: Chart, xs: Sequence[Value]) -> Curve:
    columns = zip(xs, chart.lows, chart.highs, chart.means, strict=True)
    rows = [(at, low, high, mean) for at, low, high, mean in columns if at is not None]
    rows.sort(key=lambda row: row[0])
    return Curve([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows])


def span_of(chart: Chart, xs: Sequence[Value], first: float | None, last: float | None) -> Span:
    """Between which steps a chart lies within a range of x, with one bucket more on each side."""
    low, high = -math.inf if first is None else first, math.inf if last is None else last
    known = [(step, at) for step, at in zip(chart.steps, xs, strict=True) if at is not None]
    inside = [i for i, (_, at) in enumerate(known) if low <= at <= high]
    if not inside:  # a range within one bucket
        inside = [i for i, ((_, a), (_, b)) in enumerate(pairwise(known)) if min(a, b) < low and max(a, b) > high]
    if not inside:
        return (1, 0)  # nothing
    before, after = max(inside[0] - 1, 0), inside[-1] + 1
    return (None if before == 0 else known[before][0], known[after][0] if after < len(known) else None)


def grid_of(curves: Sequence[Curve], cells: int, first: float | None = None, last: float | None = None) -> list[float]:
    """Where to read: at the places the curves have, if there are at most `cells` of them, else evenly."""
    places: set[float] = set()
    low, high = math.inf, -math.inf
    for curve in curves:
        inside = [x for x in curve.xs if (first is None or x >= first) and (last is None or x <= last)]
        if inside:
            low, high = min(low, inside[0]), max(high, inside[-1])
        if len(places) <= cells:
            places.update(inside)
    if low > high:
        return []
    if len(places) <= cells:
        return sorted(places)
    return [low + (high - low) * i / (cells - 1) for i in range(cells)] if cells > 1 else [low]


def aggregate(curves: Sequence[Curve], grid: Sequence[float]) -> Aggregate:
    aggregate = Aggregate(xs=list(grid))
    read = [_read(curve, grid) for curve in curves]
    for i in range(len(grid)):
        cells = [cell for one in read if (cell := one[i]) is not None]
        aggregate.counts.append(len(cells))
        if not cells:
            for column in (aggregate.means, aggregate.deviations, aggregate.lows, aggregate.highs):
                column.append(None)
            continue
        means = [cell[2] for cell in cells]
        mean = _mean(means)
        aggregate.means.append(mean)
        aggregate.deviations.append(_deviation(means, mean))
        aggregate.lows.append(min(cell[0] for cell in cells))
        aggregate.highs.append(max(cell[1] for cell in cells))
    return aggregate


Cell = tuple[float, float, float]  # low, high, mean


def _read(curve: Curve, grid: Sequence[float]) -> list[Cell | None]:
    """A curve at each place of the grid: what lies in its cell, or between its neighbours."""
    xs = curve.xs
    if not xs:
        return [None] * len(grid)
    edges = [(a + b) / 2 for a, b in pairwise(grid)]
    if edges:  # the outer cells reach as far outwards as inwards
        starts = [bisect_left(xs, edge) for edge in (2 * grid[0] - edges[0], *edges)]
        ends = [*starts[1:], bisect_right(xs, 2 * grid[-1] - edges[-1])]
    else:
        starts, ends = [bisect_left(xs, at) for at in grid], [bisect_right(xs, at) for at in grid]
    return [
        _within(curve, start, end) if end > start else _between_neighbours(curve, bisect_left(xs, at), at)
        for at, start, end in zip(grid, starts, ends, strict=True)
    ]


def _within(curve: Curve, start: int, end: int) -> Cell | None:
    if end == start + 1:  # most often
        first, last, middle = curve.lows[start], curve.highs[start], curve.means[start]
        return None if first is None or last is None or middle is None else (first, last, middle)
    low = [v for v in curve.lows[start:end] if v is not None]
    high = [v for v in curve.highs[start:end] if v is not None]
    mean = [v for v in curve.means[start:end] if v is not None]
    return (min(low), max(high), _mean(mean)) if low and high and mean else None


def _mean(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return mean if math.isfinite(mean) else math.fsum(value / len(values) for value in values)  # near the greatest there are


def _between_neighbours(curve: Curve, after: int, at: float) -> Cell | None:
    if not 0 < after < len(curve.xs):
        return None
    left, right = curve.means[after - 1], curve.means[after]
    if left is None or right is None:
        return None
    share = (at - curve.xs[after - 1]) / (curve.xs[after] - curve.xs[after - 1])
    value = left * (1 - share) + right * share
    return value, value, value


def _along(steps: Sequence[int], other: Chart) -> list[Value]:
    """Another metric's value at each of these steps; None outside of what it has."""
    curve = Curve(other.steps, other.lows, other.highs, other.means)
    found: list[Value] = []
    for step in steps:
        index = bisect_left(other.steps, step)
        if index < len(other.steps) and other.steps[index] == step:
            found.append(other.means[index])
        else:
            cell = _between_neighbours(curve, index, step)
            found.append(None if cell is None else cell[2])
    return found


def _deviation(values: Sequence[float], mean: float) -> float:
    try:
        return math.sqrt(sum([(value - mean) ** 2 for value in values]) / (len(values) - 1)) if len(values) > 1 else 0.0
    except OverflowError:
        return math.inf
