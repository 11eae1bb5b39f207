"""A filter's comparisons as SQL conditions on `runs`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, case, exists, false, func, not_, null, or_, select

from onward.tracker import schema
from onward.tracker.search.filter_tokens import FilterToken, unquote
from onward.tracker.search.filter_values import FilterValues
from onward.tracker.search.summary_columns import SUMMARY_FIELDS, summary_column

_runs, _params, _tags, _series, _experiments = schema.runs, schema.params, schema.tags, schema.series, schema.experiments
_members = schema.memberships
_TIMES = {"created", "started", "ended", "updated", "checkpoint"}
_NUMBERS = {"last_step", "leg", "duration", "progress", "queue_wait", "gpu_use"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a comparison is about: a room (params, metrics, tags, run) and a key in it; of metrics, which value."""

    room: str
    key: str
    best: str = "last_value"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison that awaits its column. `negated`: !=, not in, not like."""

    sign: str
    words: list[FilterToken]
    values: FilterValues
    start: FilterToken
    negated: bool = False

    def on(self, column: ColumnElement[Any], kind: str) -> ColumnElement[bool]:
        """Whether a value passes; false where there is none, never unknown."""
        if self.sign in ("like", "ilike"):
            if kind != "text":
                raise self.values.error(self.start, f"{self.sign} works only on text")
            pattern = unquote(self.words[0].text)
            found: ColumnElement[bool] = column.like(pattern) if self.sign == "like" else func.lower(column).like(pattern.lower())
        else:
            found = self._compared(column, [self._value(word, kind) for word in self.words])
        return and_(column.is_not(None), not_(found) if self.negated else found)

    def on_metric(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        """The same of a metric that is there: null is NaN, which is other than any number, and neither more nor less."""
        if self.sign in ("like", "ilike"):
            raise self.values.error(self.start, f"{self.sign} works only on text")
        floats = [self.values.number(word) for word in self.words]
        numbers, nan = [value for value in floats if value == value], column.is_(None)
        asked = len(numbers) < len(floats)
        found = self._compared(column, numbers) if numbers else false()
        known = and_(column.is_not(None), not_(found) if self.negated else found)
        if self.sign not in ("=", "in"):
            return known
        return or_(known, nan) if asked is not self.negated else known

    def _compared(self, column: ColumnElement[Any], values: list[Any]) -> ColumnElement[bool]:
        return column.in_(values) if self.sign == "in" else column.op(self.sign, is_comparison=True)(values[0])

    def _value(self, word: FilterToken, kind: str) -> Any:
        match kind:
            case "number":
                return self.values.number(word)
            case "time":
                return self.values.time(word)
            case "state":
                return self.values.state(word)
            case _:
                return unquote(word.text)


def run_has(target: Target, test: Comparison | None) -> ColumnElement[bool]:
    """Whether a run has this, and it passes the test."""
    if target.room == "run":
        return _field(target.key, test)
    if target.room == "metrics":
        shown = [_series.c.key == target.key, _series.c.last_step.is_not(None)]
        return _runs.c.id.in_(select(_series.c.run).where(*shown, *([test.on_metric(_series.c[target.best])] if test else ())))
    table = (_params if target.room == "params" else _tags).alias()
    terms: list[ColumnElement[bool]] = [table.c.run == _runs.c.id, table.c.key == target.key]
    if target.room == "params":
        terms.append(table.c.current)
    if test and target.room == "params" and _by_number(test):
        number = test.on(table.c.number, "number")
        terms.append(or_(number, table.c.number.is_(None)) if test.negated else number)  # a text is other than any number
    elif test:
        terms.append(test.on(table.c.value, "text"))
    return exists(select(null()).select_from(table).where(*terms).correlate(_runs))


def _by_number(test: Comparison) -> bool:
    """A param is text: it is compared as a number where the other side is one, or where it is asked for more or less than one."""
    if test.sign in ("like", "ilike"):
        return False
    if all(word.kind == "number" for word in test.words):
        return True
    return test.sign not in ("=", "in") and all(re.fullmatch(r"[-+.\deE]+", unquote(w.text)) for w in test.words)


def _field(name: str, test: Comparison | None) -> ColumnElement[bool]:
    column = _runs.c.started if name == "started" else run_column(name)
    if test is None:
        return column.is_not(None)
    if name == "id":
        each = (test.on(_runs.c.run_id, "text"), test.on(_runs.c.hex_id, "text"))
        return and_(*each) if test.negated else or_(*each)
    if name == "pipeline":
        return _pipeline(test)
    kind = "time" if name in _TIMES else "number" if name in _NUMBERS else "state" if name == "state" else "text"
    if name == "state" and test.sign in ("like", "ilike"):
        kind = "text"
    return test.on(column, kind)


def _pipeline(test: Comparison) -> ColumnElement[bool]:
    """By the pipeline's folder, where a path is given, else by the folder's name."""
    c = _members.c.pipeline
    whole = all("/" in unquote(word.text) for word in test.words)
    column = c if whole else func.replace(c, func.rtrim(c, func.replace(c, "/", "")), "")
    return _runs.c.id.in_(select(_members.c.run).where(test.on(column, "text")))


def run_column(name: str) -> ColumnElement[Any]:
    match name:
        case "id":
            return _runs.c.run_id
        case "experiment":
            return select(_experiments.c.name).where(_experiments.c.id == _runs.c.experiment).scalar_subquery()
        case "pipeline":
            return select(_members.c.pipeline).where(_members.c.run == _runs.c.id).scalar_subquery()
        case "duration":
            return case((_runs.c.started.is_(None), null()), else_=func.coalesce(_runs.c.ended, _runs.c.updated) - _runs.c.started)
        case "started":
            return func.coalesce(_runs.c.started, _runs.c.created)
        case _ if name in SUMMARY_FIELDS:
            return summary_column(name)
        case _:
            return _runs.c[name]
