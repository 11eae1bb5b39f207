"""What runs logged, as a tracker on this machine has it: keys, curves, GPUs. Of a run that it does not know yet: nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from onward.errors import NotFound
from onward.tracker.runs.registry import one_run
from onward.tracker.runs.rows import Metric
from onward.tracker.series.charts import Chart
from onward.tracker.series.machine_samples import sampled
from onward.tracker.series.stitch import SYSTEM_PREFIX
from onward.tracker.store import Tracker
from onward.tui.sources.interface import ChartSeries, GpuReading

_HISTORY = 120  # values of a GPU's small curve


class TrackedMetrics:
    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def keys(self, run: str) -> tuple[str, ...]:
        """Those of the training before those of the machine."""
        with suppress(NotFound):
            return tuple(sorted(self._tracker.series.metrics(run), key=lambda key: (key.startswith(SYSTEM_PREFIX), key)))
        return ()

    def series(self, run: str, keys: Sequence[str], *, points: int) -> tuple[ChartSeries, ...]:
        with suppress(NotFound):
            return tuple(_series(chart) for chart in self._tracker.series.charts([run], keys, buckets=points))
        return ()

    def gpus(self, run: str, node: str) -> tuple[GpuReading, ...]:
        """`node`: where the leg's supervisor is, whose samples name none."""
        with suppress(NotFound):
            with self._tracker.reading_points() as connection:
                machines = sampled(connection, one_run(connection, run))
            gpus = [(machine.node or node, uuid, figures) for machine in machines for uuid, figures in sorted(machine.gpus.items())]
            uses = [figures["percent"].key for _, _, figures in gpus if "percent" in figures]
            histories = {chart.key: tuple(chart.means) for chart in self._tracker.series.charts([run], uses, buckets=_HISTORY)}
            return tuple(_gpu(where, uuid, figures, histories) for where, uuid, figures in gpus)
        return ()


def _series(chart: Chart) -> ChartSeries:
    lows, highs = (_floats(values, chart.odd) for values in (chart.lows, chart.highs))
    return ChartSeries(
        run=chart.run,
        key=chart.key,
        steps=tuple(map(float, chart.steps)),
        times=tuple(chart.times),
        lows=lows,
        highs=highs,
        points=chart.points,
        began=chart.began,
        legs=tuple(first for _, first in chart.legs[1:]),
    )


def _floats(values: Sequence[float | None], odd: Mapping[int, float]) -> tuple[float, ...]:
    return tuple(odd.get(n, math.nan) if value is None else value for n, value in enumerate(values))


def _gpu(node: str, uuid: str, figures: Mapping[str, Metric], histories: Mapping[str, tuple[float | None, ...]]) -> GpuReading:
    last = {name: metric.value for name, metric in figures.items()}
    return GpuReading(
        node=node,
        uuid=uuid,
        percent=last.get("percent"),
        mem_used=last.get("mem_used_mib"),
        mem_total=last.get("mem_total_mib"),
        power=last.get("power_w"),
        temperature=last.get("temperature_c"),
        history=histories.get(figures["percent"].key, ()) if "percent" in figures else (),
    )
