"""Series: charts at a resolution, raw points, and points taken in."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.ingest.point_parser import many_points, one_point, step_of_points
from onward.api.routes.path_params import RunId, must_be_storable, run_of
from onward.api.schemas.base import In, Key, MetricOut, Number, Text, json_response, metric_record, number
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.tracker.series.charts import Chart

router = APIRouter(prefix="/api/v1", tags=["series"])

_BUCKETS = 200
_MOST_SERIES = 5000
_STEP = (1 << 63) - 1

Buckets = Annotated[int, Query(ge=1, le=10_000, description="The most buckets: the resolution.")]
First = Annotated[int | None, Query(ge=-_STEP, le=_STEP, description="From this step on.")]
Last = Annotated[int | None, Query(ge=-_STEP, le=_STEP, description="Up to this step.")]


class ChartOut(BaseModel):
    """Columns side by side, by step. A bucket's `low` and `high` are of its finite values: no spike is lost."""

    run: str
    metric: str
    points: int = Field(description="How many points there are in the range.")
    superseded: int = Field(description="How many of the series' points a later leg has superseded.")
    total: int = Field(description="How many points the whole series has, superseded ones too: a live chart compares itself with it.")
    began: float | None = Field(description="When the run started: where its relative time begins.")
    legs: list[tuple[int, int]] = Field(description="For each leg in the series, its number and its first step.")
    exact: bool = Field(description="Each bucket is one point; then there is `values` instead of `lows` and `highs`.")
    steps: list[int]
    values: list[Number] | None = Field(default=None, description="NaN and infinities are the strings NaN, Infinity, -Infinity.")
    lows: list[float | None] | None = Field(default=None, description="Null if a bucket has no finite value.")
    highs: list[float | None] | None = None
    means: list[float | None] | None = Field(default=None, description="If requested, and not exact.")
    times: list[float] | None = Field(default=None, description="If requested: of each bucket's first point.")
    bads: list[int] | None = Field(default=None, description="NaN and infinities in each bucket; left out if there are none.")


class ChartList(BaseModel):
    series: list[ChartOut]


Edge = Annotated[int, Field(ge=-_STEP, le=_STEP)] | None
Span = tuple[Edge, Edge]


class SeriesSearch(In):
    runs: list[Annotated[Text, Field(max_length=64)]] = Field(min_length=1, max_length=1000)
    metrics: list[Key] = Field(min_length=1, max_length=1000)
    buckets: int = Field(default=_BUCKETS, ge=1, le=10_000)
    first: int | None = Field(default=None, ge=-_STEP, le=_STEP)
    last: int | None = Field(default=None, ge=-_STEP, le=_STEP)
    spans: dict[Annotated[Text, Field(max_length=64)], Span] = Field(
        default_factory=dict, max_length=1000, description="Runs with a first and a last step of their own (null: open)."
    )
    means: bool = False
    times: bool = False


class PointOut(BaseModel):
    step: int
    time: float
    value: Number
    leg: int
    superseded: bool


class PointList(BaseModel):
    points: list[PointOut]
    next: int | None = Field(description="The offset of the next page; null on the last.")


class MetricList(BaseModel):
    metrics: dict[str, MetricOut]


class PointIn(In):
    name: Key
    value: float | str = Field(description="A number, or NaN, Infinity, -Infinity.")
    step: int = Field(default=0, ge=-_STEP, le=_STEP)
    timestamp: float | str | None = Field(default=None, description="Unix seconds or milliseconds, or ISO 8601; default: now.")


class PointsIn(In):
    points: list[PointIn] = Field(max_length=10_000)


class StepIn(In):
    step: int = Field(default=0, ge=-_STEP, le=_STEP)
    metrics: dict[Key, float | str] = Field(max_length=10_000)
    timestamp: float | str | None = None


class Stored(BaseModel):
    stored: int = Field(description="Points that were committed.")


@router.get("/series", summary="Draw series", response_model=ChartList)
def charts(
    svc: Svc,
    run: Annotated[list[str], Query(description="The runs; repeat.", min_length=1, max_length=1000)],
    metric: Annotated[list[str], Query(description="The metrics; repeat.", min_length=1, max_length=1000)],
    buckets: Buckets = _BUCKETS,
    first: First = None,
    last: Last = None,
    means: Annotated[bool, Query(description="With the mean of each bucket.")] = False,
    times: Annotated[bool, Query(description="With the time of each bucket.")] = False,
) -> Response:
    """Legs are stitched; where several legs logged the same steps, the newest leg counts. A metric that a run does not have is left out."""
    return _charts(svc, run, metric, buckets=buckets, first=first, last=last, means=means, times=times)


@router.post("/series/search", summary="Draw many series", response_model=ChartList)
def search(svc: Svc, asked: SeriesSearch) -> Response:
    """Like GET, for requests that are too long for an address. Changes nothing."""
    given = asked.model_dump(exclude={"runs", "metrics"})
    return _charts(svc, asked.runs, asked.metrics, **given)


@router.get("/runs/{run_id}/metrics", summary="List a run's metrics", response_model=MetricList)
def metrics(svc: Svc, run_id: RunId) -> Response:
    """Each with its last and best values."""
    found = svc.tracker.series.metrics(run_of(svc, run_id).run_id)
    return json_response({"metrics": {key: metric_record(metric) for key, metric in found.items()}})


@router.get("/runs/{run_id}/points", summary="Read raw points", response_model=PointList)
def points(
    svc: Svc,
    run_id: RunId,
    metric: Annotated[str, Query(description="The metric.", max_length=250)],
    first: First = None,
    last: Last = None,
    superseded: Annotated[bool, Query(description="Include superseded points.")] = False,
    limit: Annotated[int, Query(ge=1, le=100_000, description="The most to return.")] = 10_000,
    offset: Annotated[int, Query(ge=0, le=1 << 53, description="How many to skip: the `next` of the previous answer.")] = 0,
) -> Response:
    """By step and time."""
    must_be_storable(metric)
    found = svc.tracker.series.points(
        run_of(svc, run_id).run_id, metric, first=first, last=last, superseded=superseded, limit=limit + 1, offset=offset
    )
    shown = [{"step": p.step, "time": p.time, "value": number(p.value), "leg": p.leg, "superseded": p.superseded} for p in found[:limit]]
    return json_response({"points": shown, "next": offset + limit if len(found) > limit else None})


@router.post("/runs/{run_id}/metrics", summary="Add points", openapi_extra={"x-hot": True})
def add(svc: Svc, run_id: RunId, asked: Annotated[PointsIn | PointIn, Body()]) -> Stored:
    """One or several. The answer comes when they are committed. A point with the same step, time and value is stored once."""
    data = asked.model_dump(exclude_none=True)
    return _store(svc, run_id, many_points(data, svc.clock.now()) if "points" in data else [one_point(data, svc.clock.now())])


@router.post("/runs/{run_id}/metrics/batch", summary="Add one step's metrics", openapi_extra={"x-hot": True})
def add_step(svc: Svc, run_id: RunId, asked: StepIn) -> Stored:
    """Several metrics of one step. The answer comes when they are committed."""
    return _store(svc, run_id, step_of_points(asked.model_dump(exclude_none=True), svc.clock.now()))


def _store(svc: Services, run_id: str, found: list[tuple[str, int, float, float]]) -> Stored:
    svc.tracker.ingest.points(run_id, found)
    return Stored(stored=len(found))


def _charts(
    svc: Services, runs: list[str], metrics: list[str], *, buckets: int, first: int | None, last: int | None, means: bool, times: bool,
    spans: dict[str, Span] | None = None,
) -> Response:  # fmt: skip
    for text in (*runs, *metrics):
        must_be_storable(text)
    if len(runs) * len(metrics) > _MOST_SERIES:
        raise InvalidInput(f"{len(runs) * len(metrics)} series are too many for one answer", hint=f"ask for at most {_MOST_SERIES}")
    drawn = svc.tracker.series.charts(runs, metrics, buckets=buckets, first=first, last=last, spans=spans)
    return json_response({"series": [_chart(chart, means=means, times=times) for chart in drawn]})


def _chart(chart: Chart, *, means: bool, times: bool) -> dict[str, Any]:
    """Values to six digits: more than any screen shows, and half the bytes."""
    body: dict[str, Any] = {
        "run": chart.run,
        "metric": chart.key,
        "points": chart.points,
        "superseded": chart.superseded,
        "total": chart.total,
        "began": chart.began,
        "legs": chart.legs,
        "exact": chart.exact,
        "steps": chart.steps,
    }
    if chart.exact:
        body["values"] = values = _short(chart.lows)
        for index, value in chart.odd.items():
            values[index] = number(value)
    else:
        body |= {"lows": _short(chart.lows), "highs": _short(chart.highs)}
        if means:
            body["means"] = _short(chart.means)
    if times:
        body["times"] = [round(time, 3) for time in chart.times]
    if any(chart.bads):
        body["bads"] = chart.bads
    return body


def _short(values: list[float | None]) -> list[Number | None]:
    return [None if v is None or not math.isfinite(v) else v if v == 0 else float(f"{v:.6g}") for v in values]
