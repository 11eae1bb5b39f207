"""Which metrics runs have, by key: searched, ordered and paged by the database, so that thousands of keys stay light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Select, func, or_, select

from onward.errors import NotFound
from onward.tracker import schema
from onward.tracker.runs.rows import Metric, metric_of

_runs, _series = schema.runs, schema.series
_AT_ONCE = 500


@dataclass(kw_only=True)
class MetricKeyRow:
    key: str
    runs: int  # how many of those asked about have it
    points: int
    values: dict[str, Metric] = field(default_factory=dict)  # by run


@dataclass(kw_only=True)
class MetricKeyPage:
    keys: list[MetricKeyRow]
    total: int


def metric_keys(
    connection: Connection, runs: Sequence[str], *, words: Sequence[str] = (), limit: int = 100, offset: int = 0, values: bool = False
) -> MetricKeyPage:
    """Keys that hold every one of `words`, by name; with `values`, what each run has of them. An unknown run is NotFound."""
    inner = _inner(connection, runs)
    found: dict[str, MetricKeyRow] = {}
    ids = list(inner)
    for i in range(0, len(ids), _AT_ONCE):
        query = select(_series.c.key, func.count().label("runs"), func.sum(_series.c.points).label("points"))
        for row in connection.execute(_matching(query, ids[i : i + _AT_ONCE], words).group_by(_series.c.key)):
            kept = found.setdefault(row.key, MetricKeyRow(key=row.key, runs=0, points=0))
            kept.runs += row.runs
            kept.points += int(row.points)
    page = [found[key] for key in sorted(found, key=_natural)[offset : offset + limit]]
    if values:
        _fill(connection, inner, {row.key: row for row in page})
    return MetricKeyPage(keys=page, total=len(found))


def _inner(connection: Connection, runs: Sequence[str]) -> dict[int, str]:
    """The runs by inner id, as they were named."""
    c, names, inner = _runs.c, list(dict.fromkeys(runs)), {}
    for i in range(0, len(names), _AT_ONCE):
        some = names[i : i + _AT_ONCE]
        for row in connection.execute(select(c.id, c.run_id, c.hex_id).where(or_(c.run_id.in_(some), c.hex_id.in_(some)))):
            inner[row.id] = row.run_id if row.run_id in some else row.hex_id
    missing = sorted(set(names) - set(inner.values()))
    if missing:
        raise NotFound(f"there is no run {missing[0]!r}")
    return inner


def _matching(query: Select[tuple[str, int, int]], ids: Sequence[int], words: Sequence[str]) -> Select[tuple[str, int, int]]:
    c = _series.c
    query = query.where(c.run.in_(ids), c.last_step.is_not(None))
    for word in words:
        query = query.where(func.lower(c.key).contains(word.lower(), autoescape=True))
    return query


def _fill(connection: Connection, inner: dict[int, str], rows: dict[str, MetricKeyRow]) -> None:
    ids, keys = list(inner), list(rows)
    for i in range(0, len(ids), _AT_ONCE):
        for j in range(0, len(keys), _AT_ONCE):
            query = select(_series).where(_series.c.run.in_(ids[i : i + _AT_ONCE]), _series.c.key.in_(keys[j : j + _AT_ONCE]))
            for row in connection.execute(query.where(_series.c.last_step.is_not(None))):
                rows[row.key].values[inner[row.run]] = metric_of(row)


def _natural(key: str) -> list[tuple[int, int, str]]:
    """`layer/2` before `layer/10`."""
    parts: list[tuple[int, int, str]] = []
    word = ""
    for letter in [*key, ""]:
        digit = letter.isascii() and letter.isdigit()
        if word and (not letter or digit != (word[-1].isascii() and word[-1].isdigit())):
            number = word.isascii() and word.isdigit()
            parts.append((0, int(word), word) if number else (1, 0, word))
            word = ""
        word += letter
    return parts
