"""Lives of a run that others execute: what runs again after its end is a new leg, if the one before has logged.

Such a run does not say where it resumed: in each series, its first step tells (`stitch`).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select, update

from onward.tracker import schema
from onward.tracker.legs import ensure_leg
from onward.tracker.writer import Batch

_legs, _series = schema.legs, schema.series
_OVER = ("finished", "failed", "cancelled")


def follow_state(batch: Batch, row: dict[str, Any], state: str, ended: float | None) -> None:
    """Have the legs follow a state that the run is set to. `row`: the run as it was."""
    if row["source"] == "onward" or not row["leg"]:  # journals say it, or nothing was logged yet
        return
    last = (_legs.c.run == row["id"], _legs.c.leg == row["leg"])
    if state in _OVER:
        still = (*last, _legs.c.ended.is_(None))  # else its scheduler has said how it ended
        batch.connection.execute(update(_legs).where(*still).values(state=state, ended=ended or batch.now))
    elif row["state"] in _OVER:
        logged = batch.connection.execute(select(func.max(_series.c.leg)).where(_series.c.run == row["id"])).scalar()
        if logged == row["leg"]:
            ensure_leg(batch, row, row["leg"] + 1)
        else:
            batch.connection.execute(update(_legs).where(*last).values(state="running", ended=None))
