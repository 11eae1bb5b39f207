"""What a list says of runs, to filter and to order by."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import ColumnElement, Double, case, cast, func, null, select

from onward.tracker import schema

_runs, _standings = schema.runs, schema.standings
SUMMARY_FIELDS = ("why", "checkpoint", "queue_wait", "gpu_use", "progress")


def summary_column(name: str) -> ColumnElement[Any]:
    c = _standings.c
    match name:
        case "progress":
            done = case((_runs.c.state == "finished", 1.0), else_=cast(_runs.c.last_step + 1, Double) / _runs.c.total_steps)
            return case((_runs.c.total_steps.is_(None) | _runs.c.last_step.is_(None), null()), else_=done)
        case "queue_wait":  # one that goes on has lasted until now; of a run that ended before it began, there is none
            open_end = case((_runs.c.ended.is_(None), time.time()), else_=null())
            column: ColumnElement[Any] = func.coalesce(c.begun_at, open_end) - c.queued_at
        case "checkpoint":
            column = c.saved_at
        case _:
            column = c[name]
    return select(column).where(c.run == _runs.c.id).scalar_subquery()
