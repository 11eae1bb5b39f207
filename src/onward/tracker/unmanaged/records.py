"""Runs that nobody submitted: what their own records say of their name, user, process and end.

    {"kind": "init", "name", "user", "process": {"host", "boot", "space", "pid", "began"}, "experiment"?}    a process begins
    {"kind": "name", "name"}                                                                                 it calls its run otherwise
    {"kind": "finish"}    {"kind": "end", "state": "failed" | "cancelled" | "waiting", "reason"}             and how it ended

A process that was killed says nothing; `hand_watch` notices. What it presumed is taken back when the process is heard of again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, update

from onward.model.policy.job_end import ENDED_AS
from onward.model.run import LegEnd
from onward.model.storable_text import clean
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.ingest.spool_records import SpoolRecord
from onward.tracker.runs.experiments import ensure_experiment

SOURCE = "by-hand"
KINDS = ("init", "name", "finish", "end")
LEG_ENDS = {"finished": LegEnd.DONE, "failed": LegEnd.CRASHED, "cancelled": LegEnd.CANCELLED, "waiting": LegEnd.AGAIN}

_runs, _legs = schema.runs, schema.legs


def take_unmanaged(batch: Batch, row: Mapping[str, Any], leg: int, records: Sequence[SpoolRecord]) -> None:
    """Have the run's row say what these records, in their order, say. Of its state only the newest leg's count."""
    if not records:
        return
    c = _runs.c
    held = batch.connection.execute(select(c.user, c.details).where(c.id == row["id"])).one()
    details = json.loads(held.details)
    changes: dict[str, Any] = {}
    newest = leg >= row["leg"]
    if newest:
        details["heard"] = min(records[-1].t, batch.now)
        if details.pop("presumed", None):
            changes |= {"state": "running", "reason": "", "ended": None}
    for record in records:
        values = record.unmanaged
        if values is None:
            continue
        changes |= _named(batch, values, user=held.user)
        state = _state(record.t, values)
        if state and newest:
            changes |= {key: value for key, value in state.items() if key != "process"}
            details |= {"process": state["process"]} if "process" in state else {}
        if values["kind"] == "init" and leg == 1:
            changes["started"] = record.t
    if "state" in changes:
        write_leg_end(batch, row["id"], leg, changes["state"], at=changes["ended"], reason=changes["reason"])
    batch.connection.execute(update(_runs).where(c.id == row["id"]).values({**changes, "details": json.dumps(details)}))


def write_leg_end(
    batch: Batch, run: int, leg: int, state: str, *, at: float | None, reason: str = "", ended_as: LegEnd | None = None
) -> None:
    end = ended_as or LEG_ENDS.get(state)
    values = {"state": str(ENDED_AS[end]) if end else "running", "end": str(end) if end else None, "ended": at, "reason": reason}
    batch.connection.execute(update(_legs).where(_legs.c.run == run, _legs.c.leg == leg).values(values))


def _named(batch: Batch, record: Mapping[str, Any], *, user: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if record.get("name"):
        found["name"] = _text(record["name"], 500)
    if record.get("user") and not user:
        found["user"] = _text(record["user"], 250)
    if record.get("experiment"):
        found["experiment"] = ensure_experiment(batch, _text(record["experiment"], 500) or "Default")
    return found


def _state(at: float, record: Mapping[str, Any]) -> dict[str, Any]:
    match record["kind"]:
        case "init":
            process = record.get("process")
            return {"state": "running", "reason": "", "ended": None, "process": process if isinstance(process, dict) else None}
        case "finish":
            return {"state": "finished", "reason": "", "ended": at}
        case "end" if (state := str(record.get("state"))) in LEG_ENDS:
            return {"state": state, "reason": _text(record.get("reason"), 2000), "ended": None if state == "waiting" else at}
        case _:
            return {}


def _text(value: object, most: int) -> str:
    return clean(str(value or "")).strip()[:most]
