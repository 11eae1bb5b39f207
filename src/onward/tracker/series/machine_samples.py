"""Samples of the machines that a run was on: its `system/` series, by node and GPU.

system/cpu_percent                    of a leg's one node; where older runs had several, of the supervisor's
system/gpu/GPU-5a…/percent            of one of its GPUs
system/node/n2/cpu_percent            of one of a leg's several nodes
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from onward.tracker import schema
from onward.tracker.runs.rows import Metric, RunInfo, metric_of
from onward.tracker.series.stitch import SYSTEM_PREFIX

_series = schema.series


@dataclass(kw_only=True)
class SampledMachine:
    """Keys of series by figure; `node` empty: the leg's only one, or in older runs its supervisor's."""

    node: str
    figures: dict[str, Metric] = field(default_factory=dict)
    gpus: dict[str, dict[str, Metric]] = field(default_factory=dict)  # by UUID, then figure


def sampled(connection: Connection, info: RunInfo) -> list[SampledMachine]:
    c = _series.c
    mine = select(_series).where(c.run == info.inner, c.key.startswith(SYSTEM_PREFIX, autoescape=True), c.last_step.is_not(None))
    return machines(metric_of(row) for row in connection.execute(mine.order_by(c.key)))


def machines(metrics: Iterable[Metric]) -> list[SampledMachine]:
    found: dict[str, SampledMachine] = {}
    for metric in metrics:
        rest, node = metric.key.removeprefix(SYSTEM_PREFIX), ""
        if rest.startswith("node/"):
            _, node, rest = rest.split("/", 2) if rest.count("/") >= 2 else ("", "", rest)
        machine = found.setdefault(node, SampledMachine(node=node))
        if rest.startswith("gpu/") and rest.count("/") >= 2:
            _, uuid, figure = rest.split("/", 2)
            machine.gpus.setdefault(uuid, {})[figure] = metric
        else:
            machine.figures[rest] = metric
    return [found[node] for node in sorted(found)]
