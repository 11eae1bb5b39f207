"""Runs counted by what they share: a state, an experiment, a param, a tag. One query, whatever the number of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select

from onward.errors import InvalidInput
from onward.tracker import schema
from onward.tracker.search.filter import filter_condition
from onward.tracker.search.run_order import parse_order
from onward.tracker.search.text_search import mentions

_runs, _params, _tags, _experiments = schema.runs, schema.params, schema.tags, schema.experiments
_FIELDS = ("state", "experiment", "user", "cluster", "source", "name")


@dataclass(frozen=True, kw_only=True)
class GroupQuery:
    by: str
    filter: str = ""
    text: str = ""
    state: str | None = None
    archived: bool = False
    limit: int = 200


@dataclass(kw_only=True)
class RunGroup:
    value: str | None  # None: runs that have no such thing
    runs: int = 0
    states: dict[str, int] = field(default_factory=dict)
    newest: float = 0.0


def run_groups(connection: Connection, asked: GroupQuery, *, now: float) -> tuple[list[RunGroup], bool]:
    """Params that are numbers in their order, else the group of the newest run first; and whether there are more than were asked for."""
    target, _ = parse_order(asked.by)
    joined: Any = _runs
    match target.room:
        case "params":
            held = _params.alias()
            on = and_(held.c.run == _runs.c.id, held.c.key == target.key, held.c.current)
            joined, column = _runs.outerjoin(held, on), held.c.value
        case "tags":
            tagged = _tags.alias()
            joined, column = _runs.outerjoin(tagged, and_(tagged.c.run == _runs.c.id, tagged.c.key == target.key)), tagged.c.value
        case "run" if target.key == "experiment":
            named = _experiments.alias()  # a filter may ask for the experiment too
            joined, column = _runs.join(named, named.c.id == _runs.c.experiment), named.c.name
        case "run" if target.key in _FIELDS:
            column = _runs.c[target.key]
        case _:
            raise InvalidInput(f"runs are not grouped by {asked.by}", hint=f"by {', '.join(_FIELDS)}, params.KEY or tags.KEY")
    query = select(column, _runs.c.state, func.count(), func.max(_runs.c.created)).select_from(joined)
    rows = connection.execute(query.where(*_terms(asked, now)).group_by(column, _runs.c.state))
    groups: dict[str | None, RunGroup] = {}
    for value, state, count, newest in rows:
        group = groups.setdefault(value, RunGroup(value=value))
        group.runs += count
        group.states[state] = count
        group.newest = max(group.newest, newest or 0.0)
    found = _in_order(groups, by_number=target.room == "params")
    return found[: asked.limit], len(found) > asked.limit


def _terms(asked: GroupQuery, now: float) -> list[ColumnElement[bool]]:
    terms: list[ColumnElement[bool]] = [_runs.c.archived.is_not(None) if asked.archived else _runs.c.archived.is_(None)]
    if asked.state is not None:
        terms.append(_runs.c.state == asked.state)
    return [*terms, *(term for term in (filter_condition(asked.filter, now=now), mentions(asked.text)) if term is not None)]


def _in_order(groups: Mapping[str | None, RunGroup], *, by_number: bool) -> list[RunGroup]:
    """Those without the thing come last."""
    numbers = {value: _number(value) for value in groups}
    if by_number and all(number is not None for value, number in numbers.items() if value is not None):
        return sorted(groups.values(), key=lambda group: (group.value is None, numbers[group.value] or 0.0))
    return sorted(groups.values(), key=lambda group: (group.value is None, -group.newest, group.value or ""))


def _number(value: str | None) -> float | None:
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None
