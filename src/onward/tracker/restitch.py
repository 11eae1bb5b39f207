"""The last and best values of a series, worked out anew from its chunks: needed where a leg supersedes points of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select, update

from onward.tracker import schema
from onward.tracker.chunks import Packed, pack, unpack
from onward.tracker.stitch import first_steps, limits
from onward.tracker.writer import Batch

_VALUES = ("last_step", "last_time", "last_value", "min_value", "min_step", "max_value", "max_step")
_series, _chunks, _legs = schema.series, schema.chunks, schema.legs


@dataclass(frozen=True, slots=True)
class Shown:
    """What a chunk, or the part of it that shows, has to say about its series."""

    last_step: int
    last_time: int
    last_value: float | None
    low: float | None
    low_step: int | None
    high: float | None
    high_step: int | None

    @classmethod
    def of(cls, one: Packed) -> Shown:
        return cls(one.last_step, one.last_time, plain(one.last_value), one.low, one.low_step, one.high, one.high_step)


def plain(value: float | None) -> float | None:
    """As a column holds it: SQLite knows no NaN."""
    return None if value is None or value != value else value


def merge_values(row: dict[str, Any], one: Shown) -> None:
    """Last and best of a series, after these points too."""
    before = row["last_step"]
    if before is None or (one.last_step, one.last_time) > (before, row["last_time"]):
        row["last_step"], row["last_time"], row["last_value"] = one.last_step, one.last_time, one.last_value
    elif (one.last_step, one.last_time) == (before, row["last_time"]) and one.last_value is not None:
        held = row["last_value"]
        row["last_value"] = one.last_value if held is None else max(held, one.last_value)
    if one.low is not None and (row["min_value"] is None or one.low < row["min_value"]):
        row["min_value"], row["min_step"] = one.low, one.low_step
    if one.high is not None and (row["max_value"] is None or one.high > row["max_value"]):
        row["max_value"], row["max_step"] = one.high, one.high_step


def resumed_steps(batch: Batch, run: int) -> dict[int, int]:
    """Where the legs of a run went on, of those that told."""
    told = select(_legs.c.leg, _legs.c.resumed_step).where(_legs.c.run == run, _legs.c.resumed_step.is_not(None))
    return {row.leg: row.resumed_step for row in batch.connection.execute(told)}


def restitch(batch: Batch, rows: list[dict[str, Any]]) -> None:
    """Set last and best in these rows; they are not stored here."""
    resumed: dict[int, dict[int, int]] = {}
    for row in rows:
        if row["run"] not in resumed:
            resumed[row["run"]] = resumed_steps(batch, row["run"])
        _restitch_one(batch, row, resumed[row["run"]])


def restitch_run(batch: Batch, run: int) -> None:
    """After a leg has told where it went on: every series of the run."""
    rows = [dict(row) for row in batch.connection.execute(select(_series).where(_series.c.run == run)).mappings()]
    if rows:
        restitch(batch, rows)
        change = (
            update(_series)
            .where(_series.c.id == bindparam("b_id"))
            .values({name: bindparam(f"b_{name}") for name in (*_VALUES, "version")})
        )
        values = [{f"b_{name}": row[name] for name in _VALUES} | {"b_id": row["id"], "b_version": batch.version} for row in rows]
        batch.connection.execute(change, values)


def _restitch_one(batch: Batch, row: dict[str, Any], resumed: dict[int, int]) -> None:
    c = _chunks.c
    columns = (c.id, c.leg, c.first_step, c.last_step, c.last_time, c.last_value, c.min_value, c.min_step, c.max_value, c.max_step)
    found = batch.connection.execute(select(*columns).where(c.series == row["id"])).all()
    shown = limits(row["key"], first_steps((chunk.leg, chunk.first_step) for chunk in found), resumed)
    row.update(dict.fromkeys(_VALUES))
    for chunk in found:
        limit = shown[chunk.leg]
        if limit is None or chunk.last_step <= limit:
            whole = (chunk.last_step, chunk.last_time, chunk.last_value, chunk.min_value, chunk.min_step, chunk.max_value, chunk.max_step)
            merge_values(row, Shown(*whole))
        elif chunk.first_step <= limit:
            data = batch.connection.execute(select(c.data).where(c.id == chunk.id)).scalar_one()
            merge_values(row, Shown.of(pack(unpack(data).upto(limit))))
