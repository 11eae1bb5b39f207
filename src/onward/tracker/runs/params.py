"""Params and tags of a run. Params are kept per leg: a resumed training may change one, and that is no error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, select, update

from onward.model.storable_text import clean
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.legs import upsert

_params, _tags = schema.params, schema.tags


def word(value: Any) -> str:
    """A value as text: what is a text stays one, anything else as JSON writes it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, default=str)


def number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def write_params(batch: Batch, run: int, leg: int, params: Mapping[str, Any]) -> None:
    rows = [{"run": run, "key": key, "leg": leg, "value": word(v), "number": number(word(v)), "current": True} for key, v in params.items()]
    if not rows:
        return
    upsert(batch, _params, rows, keys=("run", "key", "leg"), change=("value", "number"))
    c = _params.c
    other = _params.alias("other")
    newest = select(other.c.leg).where(other.c.run == c.run, other.c.key == c.key).order_by(other.c.leg.desc()).limit(1).scalar_subquery()
    for i in range(0, len(rows), 500):
        keys = [row["key"] for row in rows[i : i + 500]]
        batch.connection.execute(update(_params).where(and_(c.run == run, c.key.in_(keys))).values(current=(c.leg == newest)))


def write_tags(batch: Batch, run: int, tags: Mapping[str, Any]) -> None:
    upsert(batch, _tags, [{"run": run, "key": k, "value": word(v)} for k, v in tags.items()], keys=("run", "key"), change=("value",))
