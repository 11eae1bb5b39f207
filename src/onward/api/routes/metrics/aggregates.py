"""Aggregates: groups of runs as one curve each, always over all runs of the group, whichever of them are drawn."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import must_be_storable
from onward.api.schemas.base import In, Key, Text
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.tracker.series.aggregate import Aggregate, Curve, aggregate, curve_of, grid_of, span_of, xs_of
from onward.tracker.series.charts import Chart

router = APIRouter(prefix="/api/v1", tags=["series"])

_MOST_RUNS = 5000
_METRIC = "metric:"


class GroupIn(In):
    name: Annotated[Text, Field(max_length=6000)]
    runs: list[Annotated[Text, Field(max_length=64)]] = Field(min_length=1, max_length=_MOST_RUNS)


class AggregateSearch(In):
    groups: list[GroupIn] = Field(min_length=1, max_length=200)
    metric: Key
    x: Annotated[Text, Field(max_length=260, pattern=r"^(step|relative|wall|metric:.+)$")] = Field(
        default="step", description="The x axis: `step`, `relative` or `wall` time (seconds), or `metric:KEY`."
    )
    cells: int = Field(default=200, ge=1, le=2000, description="The most points on the x axis.")
    first: float | None = Field(default=None, description="From this x on.", allow_inf_nan=False)
    last: float | None = Field(default=None, description="Up to this x.", allow_inf_nan=False)


class GroupOut(BaseModel):
    """Columns side by side. Deviations are sample standard deviations (0 for one run); `lows` and `highs` are of all points."""

    name: str
    runs: int = Field(description="How many runs the group has.")
    with_data: int = Field(description="How many of them have the metric in the range.")
    xs: list[float]
    means: list[float | None]
    deviations: list[float | None]
    lows: list[float | None]
    highs: list[float | None]
    counts: list[int] = Field(description="How many runs count at each point.")


class GroupList(BaseModel):
    groups: list[GroupOut]


@router.post("/series/aggregates/search", summary="Draw groups of runs")
def search(svc: Svc, asked: AggregateSearch) -> GroupList:
    """The mean of each group with its band, on one grid for all groups. Changes nothing."""
    names = list(dict.fromkeys(run for group in asked.groups for run in group.runs))
    if len(names) > _MOST_RUNS:
        raise InvalidInput(f"{len(names)} runs are too many for one answer", hint=f"ask for at most {_MOST_RUNS}")
    for text in (*names, asked.metric):
        must_be_storable(text)
    curves = _curves(svc, names, asked)
    grid = grid_of(list(curves.values()), asked.cells, asked.first, asked.last)
    return GroupList(groups=[_told(group, [curves[run] for run in group.runs if run in curves], grid) for group in asked.groups])


def _curves(svc: Services, names: list[str], asked: AggregateSearch) -> dict[str, Curve]:
    """Each run's curve; where only a part of it is wanted, that part at the full resolution."""
    keys = list(dict.fromkeys((asked.metric, asked.x.removeprefix(_METRIC)) if asked.x.startswith(_METRIC) else (asked.metric,)))
    found = _placed(svc.tracker.series.charts(names, keys, buckets=asked.cells), asked)
    if found and (asked.first is not None or asked.last is not None):
        spans = {run: span_of(chart, xs, asked.first, asked.last) for run, (chart, xs) in found.items()}
        found = _placed(svc.tracker.series.charts(list(spans), keys, buckets=asked.cells, spans=spans), asked)
    return {run: curve_of(chart, xs) for run, (chart, xs) in found.items()}


def _placed(charts: list[Chart], asked: AggregateSearch) -> dict[str, tuple[Chart, list[float | None]]]:
    key = asked.x.removeprefix(_METRIC)
    others = {chart.run: chart for chart in charts if chart.key == key} if asked.x.startswith(_METRIC) else {}
    return {chart.run: (chart, xs_of(chart, asked.x, others.get(chart.run))) for chart in charts if chart.key == asked.metric}


def _told(group: GroupIn, curves: list[Curve], grid: list[float]) -> GroupOut:
    found: Aggregate = aggregate(curves, grid)
    return GroupOut(
        name=group.name,
        runs=len(set(group.runs)),
        with_data=sum(1 for curve in curves if curve.xs),
        xs=[float(f"{x:.12g}") for x in found.xs],
        means=[_short(v) for v in found.means],
        deviations=[_short(v) for v in found.deviations],
        lows=[_short(v) for v in found.lows],
        highs=[_short(v) for v in found.highs],
        counts=found.counts,
    )


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
