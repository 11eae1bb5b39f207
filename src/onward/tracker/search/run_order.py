"""The order of a list of runs: metrics.loss desc, params.lr, created asc → SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_

from onward.errors import InvalidInput
from onward.tracker import schema
from onward.tracker.search.filter import FilterParser
from onward.tracker.search.filter_sql import Target, run_column

_runs, _params, _tags, _series = schema.runs, schema.params, schema.tags, schema.series


def parse_orders(texts: Sequence[str]) -> list[tuple[Target, bool]]:
    """An order by several: `metrics.loss desc` is (the metric, True). Each text has one, or several with commas between them."""
    return [entry for text in texts for entry in FilterParser(text, now=0).orders()]


def parse_order(text: str) -> tuple[Target, bool]:
    """An order by one."""
    entry, *more = parse_orders([text])
    if more:
        raise InvalidInput(f"{text[:60]!r} orders by several", hint="name one, then asc or desc")
    return entry


def walk_index(query: Select[Any], targets: Sequence[tuple[Target, bool]]) -> Select[Any] | None:
    """The beginning of the same order, of runs that have the first metric: an index gives them one by one, so a first page costs a page."""
    if not targets or targets[0][0].room != "metrics" or targets[0][0].best != "last_value":
        return None
    target, down = targets[0]
    column = _series.c.last_value
    query = query.join(_series, _series.c.run == _runs.c.id).where(_series.c.key == target.key, column.is_not(None))
    return apply_order(query.order_by(column.desc() if down else column.asc()), targets[1:])


def apply_order(query: Select[Any], targets: Sequence[tuple[Target, bool]]) -> Select[Any]:
    """What has no such value comes last, either way; NaN before that."""
    for target, down in targets:
        match target.room:
            case "run":
                column: ColumnElement[Any] = run_column(target.key)
                terms: list[Any] = [column.is_(None)]
            case "metrics":
                rows = _series.alias()
                query = query.outerjoin(rows, and_(rows.c.run == _runs.c.id, rows.c.key == target.key))
                column = rows.c[target.best]
                terms = [rows.c.id.is_(None), column.is_(None)]
            case _:
                table = (_params if target.room == "params" else _tags).alias()
                on = and_(table.c.run == _runs.c.id, table.c.key == target.key)
                query = query.outerjoin(table, and_(on, table.c.current) if target.room == "params" else on)
                column = table.c.value
                terms = [table.c.run.is_(None)]
                if target.room == "params":
                    terms += [table.c.number.is_(None), table.c.number.desc() if down else table.c.number.asc()]
        query = query.order_by(*terms, column.desc() if down else column.asc())
    return query
