"""Lives of a run that others execute: what runs again after its end is a new leg, if the one before has logged.

Such a run does not say where it resumed: in each series, its first step tells (`stitch`).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select, update

from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.legs import ensure_leg
from onward.tracker.series.wide.tails import settle_these

_legs, _series = schema.legs, schema.series
_OVER = ("finished", "failed", "cancelled")


def follow_state(batch: Batch, row: dict[str, Any], state: str, ended: float | None) -> None:
    """Have the legs follow a state that the run is set to. `row`: the run as it was."""
    if row["source"] == "onward" or not row["leg"]:  # journals say it, or nothing was logged yet
        return
    if state in _OVER:
        end_leg(batch, row["id"], row["leg"], state=state, ended=ended or batch.now)
    elif row["state"] in _OVER:
        if has_logged(batch, row["id"], row["leg"]):
            ensure_leg(batch, row, row["leg"] + 1)
        else:
            last = (_legs.c.run == row["id"], _legs.c.leg == row["leg"])
            batch.connection.execute(update(_legs).where(*last).values(state="running", ended=None))


def has_logged(batch: Batch, run: int, newest: int) -> bool:
    """The run's newest leg has points."""
    settle_these(batch, [run])
    logged: int | None = batch.connection.execute(select(func.max(_series.c.leg)).where(_series.c.run == run)).scalar()
    return logged == newest


def end_leg(batch: Batch, run: int, leg: int, *, state: str, ended: float) -> None:
    """Unless its scheduler has said already how it ended."""
    still = (_legs.c.run == run, _legs.c.leg == leg, _legs.c.ended.is_(None))
    batch.connection.execute(update(_legs).where(*still).values(state=state, ended=ended))
