"""Completing a filter: names and values that begin as what was typed, from what is really there.

Keys are found by leaping from one to the next in an index: fifty of them cost fifty short look-ups, however many rows there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from onward.model.run import RunState
from onward.tracker import schema

SuggestionKind = Literal["field", "room", "function", "metric", "param", "tag", "value"]

FIELDS = {
    "state": "submitted, running, waiting, finished, failed or cancelled",
    "name": "the run's name",
    "id": "the run's id",
    "user": "who started it",
    "experiment": "its experiment's name",
    "cluster": "where it runs",
    "pipeline": "the name of the pipeline that queued it",
    "source": "what created it: onward, mlflow …",
    "reason": "why it ended",
    "created": "a date, or '7d' for seven days ago",
    "started": "a date, or '7d' for seven days ago",
    "ended": "a date, or '7d' for seven days ago",
    "updated": "a date, or '7d' for seven days ago",
    "duration": "seconds",
    "step": "the last logged step",
    "leg": "the current or last leg",
    "progress": "0 to 1",
    "checkpoint": "when the newest checkpoint was published: a date, or '2h' for two hours ago",
    "queue_wait": "seconds that the newest leg waited, or has waited so far",
    "gpu_use": "0 to 1, of about the last five minutes",
    "why": "why the run is in its state, as a sentence",
}
_ROOMS = {"metrics.": "the last value of a metric", "params.": "a param", "tags.": "a tag"}
_FUNCTIONS = {"min(metrics.": "the lowest value", "max(metrics.": "the highest value"}
_PLAIN = re.compile(r"[\w/:@-]+(?:\.[\w/:@-]+)*")
_VALUES = {"user": schema.runs.c.user, "cluster": schema.runs.c.cluster, "source": schema.runs.c.source, "name": schema.runs.c.name}


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    text: str  # what stands in the filter
    kind: SuggestionKind
    about: str = ""


def names_like(connection: Connection, prefix: str, *, limit: int = 50) -> list[Suggestion]:
    """What a comparison can begin with. `prefix` is the word as far as it was typed: st, metrics.lo, min(metrics.lo, params."my k."""
    head, opening, inner = prefix.rpartition("(")
    room, dot, key = inner.partition(".")
    table = _table(room.lower()) if dot else None
    if table is not None:
        before = f"{head}{opening}{room}."
        kind: SuggestionKind = {"m": "metric", "p": "param", "t": "tag"}[room.lower()[0]]  # type: ignore[assignment]
        return [Suggestion(text=before + _written(one), kind=kind) for one in _keys(connection, table, key.strip("\"'`"), limit)]
    if opening:
        return [Suggestion(text=f"{head}(metrics.", kind="room", about=_ROOMS["metrics."])]
    known: list[tuple[dict[str, str], SuggestionKind]] = [(FIELDS, "field"), (_ROOMS, "room"), (_FUNCTIONS, "function")]
    found = [Suggestion(text=name, kind=kind, about=about) for words, kind in known for name, about in words.items()]
    return [one for one in found if one.text.startswith(prefix.lower())][:limit]


def values_like(connection: Connection, of: str, prefix: str, *, limit: int = 50) -> list[Suggestion]:
    """What `of` is compared with, as there are runs that have it: values of a state, a param, a tag, an experiment."""
    start = prefix.strip("\"'")
    room, dot, key = of.partition(".")
    table = _table(room.lower()) if dot else None
    key = key.strip("\"'`")
    if of.lower() in ("state", "status"):
        return [Suggestion(text=str(state), kind="value") for state in RunState if state.startswith(start.lower())]
    if table is schema.params or table is schema.tags:
        terms = [table.c.key == key, *([table.c.current] if table is schema.params else [])]
        query = select(table.c.value).where(*terms, table.c.value.startswith(start, autoescape=True)).distinct()
        return [Suggestion(text=_quoted(value), kind="value") for value in sorted(connection.execute(query.limit(limit)).scalars())]
    column: Any = schema.experiments.c.name if of.lower() == "experiment" else _VALUES.get(of.lower())
    if column is None:
        return []
    query = select(column).where(column.startswith(start, autoescape=True)).distinct().limit(limit)
    return [Suggestion(text=_quoted(value), kind="value") for value in sorted(connection.execute(query).scalars()) if value]


def _table(room: str) -> Any:
    return {"metrics": schema.series, "params": schema.params, "tags": schema.tags}.get(room)


def _keys(connection: Connection, table: Any, prefix: str, limit: int) -> Iterator[str]:
    """In order; those that hold the text elsewhere after those that begin with it are not looked for: an index knows beginnings alone."""
    last: str | None = None
    for _ in range(limit):
        query = select(func.min(table.c.key)).where(table.c.key.startswith(prefix, autoescape=True))
        found = connection.execute(query if last is None else query.where(table.c.key > last)).scalar()
        if found is None:
            return
        yield found
        last = found


def _written(key: str) -> str:
    """As a filter writes it: in quotes where it is no plain word."""
    return key if _PLAIN.fullmatch(key) else '"' + key + '"' if '"' not in key else f"`{key}`"


def _quoted(value: str) -> str:
    try:
        float(value)
    except ValueError:
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return value
