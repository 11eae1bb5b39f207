"""Searching runs as MLflow's clients do: its filters and orders as bound SQL, its order of what has no value, its pages."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, String, and_, case, cast, exists, func, not_, null, or_, select

from onward.tracker import schema
from onward.tracker.db import Database
from onward.tracker.mlflow_filter import RUNS, Clause, Order, clauses, orders
from onward.tracker.run_rows import RunView, run_info, run_query, views

_runs, _params, _tags, _series, _inputs = schema.runs, schema.params, schema.tags, schema.series, schema.inputs

CONTEXT = "mlflow.data.context"
STATES = {"RUNNING": "running", "SCHEDULED": "submitted", "FINISHED": "finished", "FAILED": "failed", "KILLED": "cancelled"}
STATUSES = {**{state: status for status, state in STATES.items()}, "waiting": "SCHEDULED"}


@dataclass(frozen=True, kw_only=True)
class Search:
    experiments: Sequence[int]
    filter: str = ""
    orders: Sequence[str] = ()
    archived: bool | None = False
    limit: int = 1000
    offset: int = 0


def search_runs(database: Database, search: Search) -> tuple[list[RunView], bool]:
    """A page of runs, and whether there are more."""
    terms: list[ColumnElement[bool]] = [_runs.c.experiment.in_(list(search.experiments))]
    if search.archived is not None:
        terms.append(_runs.c.archived.is_not(None) if search.archived else _runs.c.archived.is_(None))
    terms += [_term(clause) for clause in clauses(search.filter, RUNS)]
    query = select(_runs.c.id).where(*terms)
    for order in orders(search.orders, RUNS):
        query = _ordered(query, order)
    query = query.order_by(_started().desc(), _runs.c.hex_id.asc())
    with database.reading() as connection:
        ids = list(connection.execute(query.limit(search.limit + 1).offset(search.offset)).scalars())
        more = len(ids) > search.limit
        infos = {}
        for i in range(0, len(ids), 500):
            for row in connection.execute(run_query().where(_runs.c.id.in_(ids[i : i + 500]))).mappings():
                infos[row["id"]] = run_info(row)
        return views(connection, [infos[id] for id in ids[: search.limit] if id in infos]), more


def _started() -> ColumnElement[Any]:
    return func.coalesce(_runs.c.started, _runs.c.created)


def _column(key: str) -> ColumnElement[Any]:
    match key:
        case "run_id":
            return _runs.c.hex_id
        case "run_name":
            return _runs.c.name
        case "user_id":
            return _runs.c.user
        case "status":
            return case(*((_runs.c.state == state, status) for state, status in STATUSES.items()), else_="RUNNING")
        case "start_time":
            return _milliseconds(_started())
        case "end_time":
            return _milliseconds(_runs.c.ended)
        case "experiment_id":
            return cast(_runs.c.experiment, String)
        case "lifecycle_stage":
            return case((_runs.c.archived.is_(None), "active"), else_="deleted")
        case _:
            return "mlflow-artifacts:/" + cast(_runs.c.experiment, String) + "/" + _runs.c.hex_id + "/artifacts"


def _milliseconds(seconds: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.round(seconds * 1000)


def _term(clause: Clause) -> ColumnElement[bool]:
    if clause.room == "attribute":
        return _test(_column(clause.key), clause)
    if clause.room == "dataset":
        return _on_dataset(clause)
    table = {"metric": _series, "param": _params, "tag": _tags}[clause.room].alias()
    terms: list[ColumnElement[bool]] = [table.c.run == _runs.c.id, table.c.key == clause.key]
    if clause.room == "param":
        terms.append(table.c.current)
    if clause.room == "metric":
        terms.append(table.c.last_step.is_not(None))
        test = _test(table.c.last_value, clause)
        terms.append(or_(test, table.c.last_value.is_(None)) if clause.sign == "!=" else test)  # NaN is another than any number
    elif clause.sign not in ("IS NULL", "IS NOT NULL"):
        terms.append(_test(table.c.value, clause))
    there = exists(select(null()).select_from(table).where(*terms).correlate(_runs))
    return not_(there) if clause.sign == "IS NULL" else there


def _on_dataset(clause: Clause) -> ColumnElement[bool]:
    table = _inputs.alias()
    test = _on_context(table.c.tags, clause) if clause.key == "context" else _test(table.c[clause.key], clause)
    return exists(select(null()).select_from(table).where(table.c.run == _runs.c.id, table.c.kind == "dataset", test).correlate(_runs))


def _on_context(tags: ColumnElement[str], clause: Clause) -> ColumnElement[bool]:
    """The context is a tag of the dataset's, and those lie in one JSON text: it is looked for there."""
    match clause.sign:
        case "LIKE" | "ILIKE":
            column = func.lower(tags) if clause.sign == "ILIKE" else tags
            pattern = clause.value.lower() if clause.sign == "ILIKE" else clause.value
            return column.like(f'%"{CONTEXT}":"{pattern}"%')
        case "=" | "IN":
            values = clause.value if clause.sign == "IN" else (clause.value,)
            return or_(*(tags.contains(_fragment(value), autoescape=True) for value in values))
        case _:
            values = clause.value if clause.sign == "NOT IN" else (clause.value,)
            there = tags.contains(f'"{CONTEXT}":', autoescape=True)
            return and_(there, *(not_(tags.contains(_fragment(value), autoescape=True)) for value in values))


def _fragment(context: str) -> str:
    return f'"{CONTEXT}":{json.dumps(context)}'


def _test(column: ColumnElement[Any], clause: Clause) -> ColumnElement[bool]:
    match clause.sign:
        case "LIKE":
            return column.like(clause.value)
        case "ILIKE":
            return func.lower(column).like(clause.value.lower())
        case "IN":
            return column.in_(clause.value)
        case "NOT IN":
            return column.not_in(clause.value)
        case sign:
            return _COMPARE[sign](column, clause.value)


_COMPARE: Mapping[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _ordered(query: Select[Any], order: Order) -> Select[Any]:
    """What has no value comes last, whichever way; NaN before that."""
    if order.room == "attribute":
        column = _column(order.key)
        return query.order_by(column.is_(None), column.desc() if order.down else column.asc())
    table = {"metric": _series, "param": _params, "tag": _tags}[order.room].alias()
    on = and_(table.c.run == _runs.c.id, table.c.key == order.key)
    if order.room == "param":
        on = and_(on, table.c.current)
    query = query.outerjoin(table, on)
    column = table.c.last_value if order.room == "metric" else table.c.value
    return query.order_by(table.c.run.is_(None), column.is_(None), column.desc() if order.down else column.asc())
