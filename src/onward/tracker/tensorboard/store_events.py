"""What was read of an event file, stored in one transaction: its points, its legs, how far it was read, and what was damaged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, select

from onward.rundir.event_files.frames import Damage
from onward.rundir.event_files.scalar_events import ScalarEvent
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.ingest.receive import run_row, touch
from onward.tracker.runs.legs import ensure_leg, upsert
from onward.tracker.runs.registry import write_legs
from onward.tracker.series.point_writer import PointBatch, write_points
from onward.tracker.series.wide.tails import settle_these
from onward.tracker.tensorboard.event_folder import EventFilePosition
from onward.tracker.tensorboard.legs import LegEvents, all_of_one_leg, is_storable_key, split_into_legs

ROOM = "tensorboard/"  # begins the names of these files among the positions
_MOST_TOLD = 20  # damaged places that one note names
_positions, _series, _own = schema.positions, schema.series, schema.event_series


def store_events(
    batch: Batch,
    *,
    run: str,
    name: str,
    events: Sequence[ScalarEvent],
    prefix: str,
    leg: int | None,
    before: EventFilePosition,
    after: EventFilePosition,
    damaged: Sequence[Damage],
) -> tuple[int, str, EventFilePosition] | None:
    """Points and position; None if the stored position is not the one that was read from."""
    row = run_row(batch, run)
    c = _positions.c
    held = batch.connection.execute(select(c.offset).where(c.run == row["id"], c.file == ROOM + name)).scalar()
    if held is not None and held != before.offset and before.offset != 0:
        return None
    if leg is None:
        found, life = split_into_legs(events, before.life, row["leg"])
        after = replace(after, life=life)
    else:
        found = [all_of_one_leg(events, leg)]
    deliveries: list[PointBatch] = []
    refused = ""
    for stretch in found:
        columns = {prefix + tag: column for tag, column in stretch.columns.items() if is_storable_key(prefix + tag)}
        refused = refused or next((tag for tag in stretch.columns if not is_storable_key(prefix + tag)), "")
        if leg is None:
            write_legs(batch, row, [_leg_row(stretch, name)])
            row["leg"] = max(row["leg"], stretch.leg)
        elif columns:
            columns = _not_logged_otherwise(batch, row["id"], columns)
            row["leg"] = ensure_leg(batch, row, leg)
        deliveries.append(PointBatch(row["id"], stretch.leg, row["leg"], columns, False))
    settle_these(batch, {delivery.run for delivery in deliveries})
    written = write_points(batch, deliveries)
    keys = {key for delivery in deliveries for key in delivery.columns}
    if keys:
        if leg is not None:
            _now_ours(batch, row["id"], keys)
        steps = [max(column.steps) for delivery in deliveries for column in delivery.columns.values()]
        touch(batch, {row["id"]: max([*steps, *([] if row["last_step"] is None else [row["last_step"]])])})
    if damaged:
        _note(batch, row["id"], name, damaged)
    position = {"run": row["id"], "file": ROOM + name, "offset": after.offset, "size": after.size, "head": after.head, "life": after.begun}
    upsert(batch, _positions, [position], keys=("run", "file"), change=("offset", "size", "head", "life"))
    return written, refused, after


def _leg_row(stretch: LegEvents, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"leg": stretch.leg, "state": "finished", "details": json.dumps({"file": name, "turns": stretch.turns})}
    if stretch.started:
        row["started"] = stretch.started
    if stretch.ended:
        row["ended"] = stretch.ended
    return row if stretch.resumed is None else {**row, "resumed_step": stretch.resumed}


def _not_logged_otherwise(batch: Batch, run: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Without the metrics that have points which did not come from event files."""
    logged = _points(batch, run, columns)
    c = _own.c
    ours: dict[str, int] = {}
    for some in _by_500(columns):
        ours |= {row.key: row.points for row in batch.connection.execute(select(c.key, c.points).where(c.run == run, c.key.in_(some)))}
    return {key: column for key, column in columns.items() if logged.get(key, 0) <= ours.get(key, 0)}


def _now_ours(batch: Batch, run: int, keys: Iterable[str]) -> None:
    rows = [{"run": run, "key": key, "points": points} for key, points in _points(batch, run, keys).items()]
    upsert(batch, _own, rows, keys=("run", "key"), change=("points",))


def _points(batch: Batch, run: int, keys: Iterable[str]) -> dict[str, int]:
    c = _series.c
    found: dict[str, int] = {}
    for some in _by_500(keys):
        found |= {row.key: row.points for row in batch.connection.execute(select(c.key, c.points).where(c.run == run, c.key.in_(some)))}
    return found


def _by_500(keys: Iterable[str]) -> list[list[str]]:
    names = list(keys)
    return [names[i : i + 500] for i in range(0, len(names), 500)]


def _note(batch: Batch, run: int, name: str, damaged: Sequence[Damage]) -> None:
    text = "; ".join(damage_text(one) for one in damaged[:_MOST_TOLD]) + (
        f"; and {len(damaged) - _MOST_TOLD} more" * (len(damaged) > _MOST_TOLD)
    )
    values = {"run": run, "at": batch.now, "author": "onward", "text": f"TensorBoard file {name}: {text}"}
    batch.connection.execute(insert(schema.notes), [values])


def damage_text(one: Damage) -> str:
    return f"{one.length} bytes at byte {one.offset} are damaged and were skipped; the rest is read"
