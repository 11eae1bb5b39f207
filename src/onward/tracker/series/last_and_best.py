"""The last and best values of a series, worked out anew from its chunks: needed where a leg supersedes points of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import select

from onward.tracker import schema
from onward.tracker.db.raw_sql import execute_many, fetch, names, update_by_id
from onward.tracker.db.writer import Batch
from onward.tracker.series.chunks import pack, unpack
from onward.tracker.series.stitch import first_steps, limits

_series, _chunks, _legs = schema.series, schema.chunks, schema.legs


@dataclass(slots=True)
class SeriesRow:
    """A row of `series` in the making."""

    id: int
    run: int
    key: str
    points: int
    leg: int
    leg_first: int
    top_step: int
    top_time: int
    last_step: int | None
    last_time: int | None
    last_value: float | None
    min_value: float | None
    min_step: int | None
    max_value: float | None
    max_step: int | None
    loose: int

    COLUMNS: ClassVar = (
        *("id", "run", "key", "points", "leg", "leg_first", "top_step", "top_time", "last_step", "last_time", "last_value"),
        *("min_value", "min_step", "max_value", "max_step", "loose"),
    )
    CHANGED: ClassVar = COLUMNS[3:]

    def changed(self) -> tuple[Any, ...]:
        """The values of CHANGED."""
        return (
            *(self.points, self.leg, self.leg_first, self.top_step, self.top_time, self.last_step, self.last_time, self.last_value),
            *(self.min_value, self.min_step, self.max_value, self.max_step, self.loose),
        )

    def merge(
        self,
        last_step: int,
        last_time: int,
        last_value: float | None,
        low: float | None,
        low_step: int | None,
        high: float | None,
        high_step: int | None,
    ) -> None:
        """Last and best, after these points too."""
        before = self.last_step
        if before is None or self.last_time is None or (last_step, last_time) > (before, self.last_time):
            self.last_step, self.last_time, self.last_value = last_step, last_time, last_value
        elif (last_step, last_time) == (before, self.last_time) and last_value is not None:
            self.last_value = last_value if self.last_value is None else max(self.last_value, last_value)
        if low is not None and (self.min_value is None or low < self.min_value):
            self.min_value, self.min_step = low, low_step
        if high is not None and (self.max_value is None or high > self.max_value):
            self.max_value, self.max_step = high, high_step

    def clear(self) -> None:
        self.last_step = self.last_time = self.last_value = None
        self.min_value = self.min_step = self.max_value = self.max_step = None


def plain(value: float | None) -> float | None:
    """As a column holds it: SQLite knows no NaN."""
    return None if value is None or value != value else value


def resumed_steps(batch: Batch, run: int) -> dict[int, int]:
    """Where the legs of a run went on, of those that told."""
    query = select(_legs.c.leg, _legs.c.resumed_step).where(_legs.c.run == run, _legs.c.resumed_step.is_not(None))
    return {row.leg: row.resumed_step for row in batch.connection.execute(query)}


def recompute(batch: Batch, rows: list[SeriesRow]) -> None:
    """Set last and best in these rows; they are not stored here."""
    resumed: dict[int, dict[int, int]] = {}
    for row in rows:
        if row.run not in resumed:
            resumed[row.run] = resumed_steps(batch, row.run)
        _restitch_one(batch, row, resumed[row.run])


def recompute_run(batch: Batch, run: int) -> None:
    """After a leg has told where it went on: every series of the run."""
    found = fetch(batch.connection, f"SELECT {names(SeriesRow.COLUMNS)} FROM series WHERE run = ?", [run])
    rows = [SeriesRow(*row) for row in found]
    recompute(batch, rows)
    change = update_by_id("series", (*SeriesRow.CHANGED, "version"))
    execute_many(batch.connection, change, [(*row.changed(), batch.version, row.id) for row in rows])


def _restitch_one(batch: Batch, row: SeriesRow, resumed: dict[int, int]) -> None:
    c = _chunks.c
    columns = (c.id, c.leg, c.first_step, c.last_step, c.last_time, c.last_value, c.min_value, c.min_step, c.max_value, c.max_step)
    found: Any = batch.connection.execute(select(*columns).where(c.series == row.id)).all()
    shown = limits(row.key, first_steps((chunk.leg, chunk.first_step) for chunk in found), resumed)
    row.clear()
    for chunk in found:
        limit = shown[chunk.leg]
        if limit is None or chunk.last_step <= limit:
            row.merge(*chunk[3:])
        elif chunk.first_step <= limit:
            data = batch.connection.execute(select(c.data).where(c.id == chunk.id)).scalar_one()
            part = pack(unpack(data).upto(limit))
            row.merge(part.last_step, part.last_time, plain(part.last_value), part.low, part.low_step, part.high, part.high_step)
