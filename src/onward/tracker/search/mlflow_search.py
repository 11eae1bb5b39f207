"""Searching runs as MLflow's clients do: its filters and orders as bound SQL, its order of what has no value, its pages."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, String, and_, case, cast, exists, func, not_, null, or_, select

from onward.model.mlflow.wire import STATUSES
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.runs.registry import one_run
from onward.tracker.runs.rows import Metric, RunInfo, RunView, run_info, run_query, views
from onward.tracker.search.mlflow_filter import RUNS, Clause, Order, clauses, orders

_runs, _params, _tags, _series, _inputs, _chunks = schema.runs, schema.params, schema.tags, schema.series, schema.inputs, schema.chunks

CONTEXT = "mlflow.data.context"
_MLFLOW = "mlflow"  # the source of runs that MLflow's clients make


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
    with database.reading_points() as connection:
        ids = list(connection.execute(query.limit(search.limit + 1).offset(search.offset)).scalars())
        more = len(ids) > search.limit
        infos = {}
        for i in range(0, len(ids), 500):
            for row in connection.execute(run_query().where(_runs.c.id.in_(ids[i : i + 500]))).mappings():
                infos[row["id"]] = run_info(row)
        return _as_logged(connection, views(connection, [infos[id] for id in ids[: search.limit] if id in infos])), more


def view_run(database: Database, run: str) -> RunView:
    """A run as MLflow tells of it."""
    with database.reading_points() as connection:
        return _as_logged(connection, views(connection, [one_run(connection, run)]))[0]


def keeps_all(info: RunInfo) -> bool:
    """Whether MLflow's clients made the run: they read back all that they logged, superseded points too, as from MLflow's server."""
    return info.source == _MLFLOW


def _as_logged(connection: Connection, found: list[RunView]) -> list[RunView]:
    """With the last value of all points; of most runs that is the last that shows."""
    several = {view.info.inner: view for view in found if keeps_all(view.info) and view.info.leg > 1}
    if not several:
        return found
    s, c = _series.c, _chunks.c
    hidden = or_(s.last_step.is_(None), s.last_step != s.top_step, s.last_time != s.top_time)
    last = and_(c.series == s.id, c.last_step == s.top_step, c.last_time == s.top_time)
    query = select(s.run, s.key, s.points, s.top_step, s.top_time, func.max(c.last_value).label("value")).join(_chunks, last)
    changed: dict[int, dict[str, Metric]] = {}
    ids = list(several)
    for i in range(0, len(ids), 500):
        asked = query.where(s.run.in_(ids[i : i + 500]), hidden).group_by(s.run, s.key, s.points, s.top_step, s.top_time)
        for row in connection.execute(asked):
            value = math.nan if row.value is None else row.value
            held = several[row.run].metrics.get(row.key) or Metric(key=row.key, points=row.points)
            changed.setdefault(row.run, {})[row.key] = replace(held, value=value, step=row.top_step, time=row.top_time / 1e6)
    return [
        replace(view, metrics=dict(sorted({**view.metrics, **changed[view.info.inner]}.items()))) if view.info.inner in changed else view
        for view in found
    ]


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
        case _:
            e = schema.experiments.c
            ours = "mlflow-artifacts:/" + cast(e.id, String)
            location = select(case((e.artifact_location == "", ours), else_=func.rtrim(e.artifact_location, "/")))
            return location.where(e.id == _runs.c.experiment).scalar_subquery() + "/" + _runs.c.hex_id + "/artifacts"


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
        value = _last(table)
        test = _test(value, clause)
        terms.append(or_(test, value.is_(None)) if clause.sign == "!=" else test)  # NaN is another than any number
    elif clause.sign not in ("IS NULL", "IS NOT NULL"):
        terms.append(_test(table.c.value, clause))
    there = exists(select(null()).select_from(table).where(*terms).correlate(_runs))
    return not_(there) if clause.sign == "IS NULL" else there


def _last(table: Any) -> ColumnElement[Any]:
    """The last value of a metric: of the points that show, or (`keeps_all`) of all."""
    c, s = _chunks.c, table.c
    shows = and_(s.last_step == s.top_step, s.last_time == s.top_time)
    every = select(func.max(c.last_value)).where(c.series == s.id, c.last_step == s.top_step, c.last_time == s.top_time)
    return case((or_(shows, _runs.c.source != _MLFLOW), s.last_value), else_=every.correlate(table).scalar_subquery())


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
    column = _last(table) if order.room == "metric" else table.c.value
    return query.order_by(table.c.run.is_(None), column.is_(None), column.desc() if order.down else column.asc())
