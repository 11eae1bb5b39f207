"""The lines of a chart that is drawn from summaries, or from more points than it has room for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onward.tracker.series.chunks import GRAIN, Columns, read_summary

if TYPE_CHECKING:
    from onward.tracker.series.charts import Chart


class ChartLines:
    """Entries as a summary has them, of many chunks, and then fewer of them."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.times: list[int] = []
        self.lows: list[float] = []
        self.highs: list[float] = []
        self.sums: list[float] = []
        self.goods: list[int] = []  # finite values in each
        self.bads: list[int] = []

    def add_summary(self, data: bytes, count: int) -> None:
        summary = read_summary(data)
        self.steps += summary.steps
        self.times += summary.times
        self.lows += summary.lows
        self.highs += summary.highs
        self.sums += summary.sums
        self.bads += summary.bads
        sizes = [GRAIN] * (len(summary) - 1) + [count - GRAIN * (len(summary) - 1)]
        self.goods += [size - bad for size, bad in zip(sizes, summary.bads, strict=True)] if any(summary.bads) else sizes

    def add_points(self, columns: Columns, grain: int = GRAIN) -> None:
        for i in range(0, len(columns), grain):
            part: Sequence[float] = columns.values[i : i + grain]
            size = len(part)
            if not math.isfinite(sum(part)):
                part = [v for v in part if math.isfinite(v)]
            self.steps.append(columns.steps[i])
            self.times.append(columns.times[i])
            self.lows.append(min(part, default=math.inf))
            self.highs.append(max(part, default=-math.inf))
            self.sums.append(sum(part))
            self.goods.append(len(part))
            self.bads.append(size - len(part))

    def into(self, chart: Chart, buckets: int) -> None:
        every = -(-len(self.steps) // buckets)
        if any(map(int.__gt__, self.steps, self.steps[1:])):  # chunks that overlap: not yet compacted
            self._sort()
        starts = range(0, len(self.steps), every)
        chart.steps = self.steps[::every]
        chart.times = [t / 1e6 for t in self.times[::every]]
        lows = [min(self.lows[i : i + every]) for i in starts]
        highs = [max(self.highs[i : i + every]) for i in starts]
        goods = [sum(self.goods[i : i + every]) for i in starts]
        sums = [sum(self.sums[i : i + every]) for i in starts]
        chart.bads = [sum(self.bads[i : i + every]) for i in starts]
        chart.lows = [low if good else None for low, good in zip(lows, goods, strict=True)]
        chart.highs = [high if good else None for high, good in zip(highs, goods, strict=True)]
        chart.means = [_mean(s, g, low, high) for s, g, low, high in zip(sums, goods, lows, highs, strict=True)]

    def _sort(self) -> None:
        rows = sorted(
            zip(self.steps, self.times, self.lows, self.highs, self.sums, self.goods, self.bads, strict=True), key=lambda row: row[:2]
        )
        columns: Iterable[Any] = zip(*rows, strict=True)
        self.steps, self.times, self.lows, self.highs, self.sums, self.goods, self.bads = (list(column) for column in columns)


def _mean(total: float, count: int, low: float, high: float) -> float | None:
    if not count:
        return None
    mean = total / count
    return mean if math.isfinite(mean) else low / 2 + high / 2  # a sum of values near the greatest there are
