"""Legs of a run, as rows: one is there as soon as anything of it is."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sqlalchemy import select, update

from onward.tracker import schema
from onward.tracker.db.writer import Batch

_runs, _legs = schema.runs, schema.legs


def upsert(batch: Batch, table: Any, rows: list[dict[str, Any]], *, keys: tuple[str, ...], change: tuple[str, ...] = ()) -> None:
    """Insert rows; where one with these keys is there, set its columns `change`, or leave it if there are none."""
    if not rows:
        return
    made = import_module(f"sqlalchemy.dialects.{batch.connection.dialect.name}").insert(table)  # the other one takes 50 ms of a start
    if change:
        statement = made.on_conflict_do_update(index_elements=list(keys), set_={name: made.excluded[name] for name in change})
    else:
        statement = made.on_conflict_do_nothing(index_elements=list(keys))
    batch.connection.execute(statement, rows)


def ensure_leg(batch: Batch, row: dict[str, Any], leg: int) -> int:
    """Have a row for a leg of the run; the run's newest leg after that, which `row` says too."""
    newest: int = max(row["leg"], leg)
    if leg > row["leg"]:
        upsert(batch, _legs, [{"run": row["id"], "leg": leg, "started": batch.now}], keys=("run", "leg"))
        batch.connection.execute(update(_runs).where(_runs.c.id == row["id"], _runs.c.leg < leg).values(leg=leg))
        row["leg"] = leg
    return newest


def legs_of(connection: Any, run: int) -> list[Mapping[str, Any]]:
    return list(connection.execute(select(_legs).where(_legs.c.run == run).order_by(_legs.c.leg)).mappings())
