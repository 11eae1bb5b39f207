"""The best run of every experiment by one metric: one query, whatever the number of runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, func, select

from onward.tracker import schema
from onward.tracker.series.stitch import SYSTEM_PREFIX

Mode = Literal["min", "max"]

_runs, _series = schema.runs, schema.series
_LOW = re.compile(r"loss|err|ppl|perplexity|mse|mae|fid|time|seconds", re.IGNORECASE)
_SCORES = re.compile(r"loss|acc|err|score|reward|f1|auc|iou|bleu|ppl|perplexity", re.IGNORECASE)
_LOOKED_AT = 200  # metrics


@dataclass(frozen=True, kw_only=True)
class Best:
    experiment: int
    run_id: str
    name: str
    value: float
    step: int | None


def usual_metric(connection: Connection) -> str | None:
    """The loss or score that most runs have; else what most have. None where nobody logs anything."""
    c = _series.c
    counted = select(c.key, func.count().label("runs")).where(~c.key.startswith(SYSTEM_PREFIX, autoescape=True), c.last_step.is_not(None))
    rows = connection.execute(counted.group_by(c.key).order_by(func.count().desc(), c.key).limit(_LOOKED_AT)).all()
    scored = sorted(rows, key=lambda row: (_SCORES.search(row.key) is None, -row.runs, row.key))
    return str(scored[0].key) if scored else None


def usual_mode(metric: str) -> Mode:
    return "min" if _LOW.search(metric) else "max"


def bests(connection: Connection, metric: str, mode: Mode) -> list[Best]:
    """Of runs that are not archived; the older of equals."""
    c = _series.c
    value, step = (c.min_value, c.min_step) if mode == "min" else (c.max_value, c.max_step)
    order = value.asc() if mode == "min" else value.desc()
    rank = func.row_number().over(partition_by=_runs.c.experiment, order_by=(order, _runs.c.id)).label("rank")
    held = select(_runs.c.experiment, _runs.c.run_id, _runs.c.name, value.label("value"), step.label("step"), rank)
    held = held.join(_series, c.run == _runs.c.id).where(c.key == metric, value.is_not(None), _runs.c.archived.is_(None))
    ranked = held.subquery()
    rows = connection.execute(select(ranked).where(ranked.c.rank == 1).order_by(ranked.c.experiment))
    return [Best(experiment=row.experiment, run_id=row.run_id, name=row.name, value=row.value, step=row.step) for row in rows]
