"""Hints of schedulers: each is taken once, and kept for an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from onward.tracker.db.writer import Batch
from onward.tracker.schema import hints

if TYPE_CHECKING:
    from onward.tracker.store import Tracker

_KEPT = 3600.0  # seconds; longer than one may be late


def take_hint(tracker: Tracker, id: str, now: float) -> bool:
    """False where it was taken before, by this server or another."""

    def job(batch: Batch) -> bool:
        batch.connection.execute(delete(hints).where(hints.c.at < now - _KEPT))
        if batch.connection.execute(select(hints.c.id).where(hints.c.id == id)).first():
            return False
        batch.connection.execute(insert(hints), [{"id": id, "at": now}])
        return True

    return tracker.write(job)


def describe_hint(tracker: Tracker, id: str, *, job: str, cluster: str, text: str, taken: bool) -> None:
    """What it said, for whoever wonders where hints come from."""
    values = {"job": job, "cluster": cluster, "text": text, "taken": int(taken)}
    tracker.submit(lambda batch: batch.connection.execute(update(hints).where(hints.c.id == id).values(values)).rowcount)
