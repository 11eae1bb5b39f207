"""How fast a run logs its steps, from the newest points of the series that goes furthest."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from onward.model.analysis.eta import TrainingPace
from onward.tracker import schema
from onward.tracker.runs.rows import RunInfo
from onward.tracker.series.chunks import unpack
from onward.tracker.series.stitch import SYSTEM_PREFIX

_series, _chunks = schema.series, schema.chunks
_LATELY = 200  # points


def furthest(connection: Connection, info: RunInfo) -> str | None:
    """The metric that goes furthest and has most points: what it logs, the training has done."""
    row = _furthest(connection, info)
    return str(row.key) if row else None


def stored_pace(connection: Connection, info: RunInfo) -> TrainingPace:
    row = _furthest(connection, info)
    if row is None:
        return TrainingPace(step=info.last_step, total=info.total_steps)
    newest = select(_chunks.c.data).where(_chunks.c.series == row.id, _chunks.c.leg == row.leg)
    points: list[tuple[int, int]] = []
    for data in connection.execute(newest.order_by(_chunks.c.last_step.desc(), _chunks.c.id.desc()).limit(4)).scalars():
        columns = unpack(data)
        points += zip(columns.steps, columns.times, strict=True)
    points = sorted(points)[-_LATELY:]
    steps, elapsed = (points[-1][0] - points[0][0], (points[-1][1] - points[0][1]) / 1e6) if points else (0, 0.0)
    rate = steps / elapsed if steps > 0 and elapsed > 0 else None
    return TrainingPace(step=row.last_step, total=info.total_steps, rate=rate, at=row.last_time / 1e6)


def _furthest(connection: Connection, info: RunInfo) -> Any:
    c = _series.c
    columns = select(c.id, c.key, c.leg, c.last_step, c.last_time)
    mine = columns.where(c.run == info.inner, c.last_step.is_not(None), ~c.key.startswith(SYSTEM_PREFIX))
    return connection.execute(mine.order_by(c.last_step.desc(), c.points.desc(), c.id).limit(1)).first()
