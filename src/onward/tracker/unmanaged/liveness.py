"""Whether the processes of runs by hand still live: one of this machine that is gone has failed; of others only the silence is known."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update

from onward.model.run import LegEnd
from onward.sdk import process_identity
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.unmanaged.records import SOURCE, write_leg_end

EVERY = 5.0  # seconds between looks
SILENCE = 600.0  # of a process that cannot be checked on this machine, until it is told of

_runs = schema.runs


@dataclass(frozen=True, kw_only=True)
class LivenessVerdict:
    """`gone`: so the run is over. Else it is only not heard of, and goes on as far as anybody knows."""

    gone: bool
    words: str


def judge_liveness(details: Mapping[str, Any], *, lives: bool | None, here: Mapping[str, str], now: float) -> LivenessVerdict | None:
    """What to think of a run that says of itself that it is running. None: nothing new."""
    process = details.get("process") or {}
    who = f"its process ({process.get('pid')} on {process.get('host')})"
    if lives is not None:
        return None if lives else LivenessVerdict(gone=True, words=f"{who} wrote no end record")
    heard = details.get("heard")
    if heard is None or now - heard < SILENCE:
        return None
    if process.get("host") == here["host"] and process.get("boot") and here["boot"] and process["boot"] != here["boot"]:
        return LivenessVerdict(gone=True, words=f"{process['host']} was restarted, and {who} wrote no end record")
    since = time.strftime("%Y-%m-%d %H:%M", time.gmtime(heard))
    return LivenessVerdict(gone=False, words=f"silent since {since} UTC; {who} cannot be checked on this machine")


class UnmanagedWatch:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._looked = 0.0
        self._suspects: set[int] = set()

    def look(self, now: float) -> None:
        """After the records were read, so that an end that was told is not presumed. A process must be gone twice: its last
        words may have come in between."""
        if 0 <= now - self._looked < EVERY:  # a clock may be set back
            return
        self._looked = now
        here = process_identity.this_machine()
        c = _runs.c
        with self._database.reading() as connection:
            rows = connection.execute(select(c.id, c.leg, c.reason, c.details).where(c.source == SOURCE, c.state == schema.RUNNING)).all()
        gone: set[int] = set()
        for row in rows:
            details = json.loads(row.details)
            if not details.get("process"):
                continue  # written by an older training, or told of over HTTP
            seen = judge_liveness(details, lives=process_identity.is_alive(details["process"], here), here=here, now=now)
            if seen is None or seen.words == row.reason:
                continue
            if seen.gone and row.id not in self._suspects:
                gone.add(row.id)
                continue
            self._write(row.id, row.leg, details, seen)
        self._suspects = gone

    def _write(self, run: int, leg: int, before: Mapping[str, Any], seen: LivenessVerdict) -> None:
        c = _runs.c

        def job(batch: Batch) -> None:
            held = batch.connection.execute(select(c.state, c.details).where(c.id == run)).one()
            details = json.loads(held.details)
            if held.state != "running" or details.get("heard") != before.get("heard"):
                return  # it was heard of meanwhile
            values: dict[str, Any] = {"reason": seen.words, "version": batch.version, "updated": batch.now}
            if seen.gone:
                at = before.get("heard") or batch.now
                values |= {"state": "failed", "ended": at}
                write_leg_end(batch, run, leg, "failed", at=at, reason=seen.words, ended_as=LegEnd.LOST)
            values["details"] = json.dumps({**details, "presumed": "gone" if seen.gone else "silent"})
            batch.connection.execute(update(_runs).where(c.id == run).values(values))

        self._writer.do(job)
