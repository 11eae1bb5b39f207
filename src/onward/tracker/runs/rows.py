"""Runs as the tracker tells of them: values made of rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from onward.model.analysis.run_summary import RunSummary
from onward.tracker import schema
from onward.tracker.runs.memberships import pipelines_of
from onward.tracker.runs.summaries import summaries_of

_runs, _params, _tags, _series, _experiments = schema.runs, schema.params, schema.tags, schema.series, schema.experiments


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """`run_id` is eight letters for a run of ours, else 32 hex digits; `hex_id` is always the latter, and finds the run as well."""

    run_id: str
    hex_id: str
    experiment: int
    experiment_name: str
    artifact_location: str  # of the experiment; empty: files are kept by the server
    name: str
    state: str
    reason: str
    user: str
    source: str
    folder: str | None
    cluster: str | None
    created: float
    started: float | None
    ended: float | None
    updated: float
    archived: float | None
    total_steps: int | None
    last_step: int | None
    leg: int  # the current or last leg; 0: none yet
    details: Mapping[str, Any]
    version: int
    inner: int  # the row's number, for queries of this room


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A series in short. `value` is the last one by (step, time, value), NaN included; `low` and `high` are the best finite ones."""

    key: str
    value: float = float("nan")
    step: int = 0
    time: float = 0.0
    low: float | None = None
    low_step: int | None = None
    high: float | None = None
    high_step: int | None = None
    points: int = 0


@dataclass(frozen=True, kw_only=True)
class RunView:
    info: RunInfo
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    standing: RunSummary | None = None  # where it was asked for, and there is one
    pipeline: str | None = None  # the folder of the pipeline that queued it; told with the standing


def run_query() -> Any:
    more = (_experiments.c.name.label("experiment_name"), _experiments.c.artifact_location)
    return select(_runs, *more).join(_experiments, _experiments.c.id == _runs.c.experiment)


def run_info(row: RowMapping) -> RunInfo:
    values: dict[str, Any] = dict(row)
    inner, details = values.pop("id"), json.loads(values.pop("details"))
    del values["identity"]
    return RunInfo(**values, inner=inner, details=details)


def metric_of(row: Any) -> Metric:
    return Metric(
        key=row.key,
        value=float("nan") if row.last_value is None else row.last_value,
        step=row.last_step,
        time=row.last_time / 1e6,
        low=row.min_value,
        low_step=row.min_step,
        high=row.max_value,
        high_step=row.max_step,
        points=row.points,
    )


def views(
    connection: Connection,
    infos: Sequence[RunInfo],
    *,
    metrics: bool = True,
    params: bool = True,
    keys: Sequence[str] | None = None,
    standings: bool = False,
) -> list[RunView]:
    """The runs with their params, tags and metrics, by one query a table. `keys`: of the metrics, only these."""
    ids = [info.inner for info in infos]
    held = summaries_of(connection, ids) if standings else {}
    queued = pipelines_of(connection, ids) if standings else {}
    made = {
        info.inner: RunView(info=info, params={}, tags={}, metrics={}, standing=held.get(info.inner), pipeline=queued.get(info.inner))
        for info in infos
    }
    for i in range(0, len(ids), 500):
        some = ids[i : i + 500]
        if params:
            current = select(_params.c.run, _params.c.key, _params.c.value).where(_params.c.run.in_(some), _params.c.current)
            for run, key, value in connection.execute(current.order_by(_params.c.key)):
                made[run].params[key] = value  # type: ignore[index]
            for run, key, value in connection.execute(select(_tags).where(_tags.c.run.in_(some)).order_by(_tags.c.key)):
                made[run].tags[key] = value  # type: ignore[index]
        if metrics:
            mine = select(_series).where(_series.c.run.in_(some), _series.c.last_step.is_not(None))
            mine = mine if keys is None else mine.where(_series.c.key.in_(list(keys)))
            for row in connection.execute(mine.order_by(_series.c.key)):
                made[row.run].metrics[row.key] = metric_of(row)  # type: ignore[index]
    return list(made.values())
