"""The filter language: and, or, not, brackets; comparisons on params, metrics, tags, state, times → bound SQL.

    metrics.loss < 0.5 and params.lr = 0.001          the last value; min(metrics.loss), max(…) are the best ones
    tags."my key" like 'a%' or not state in (failed, cancelled)
    created > '2026-01-31' and ended is null          times: a date, '7d' for seven days ago, unix seconds or milliseconds
    metrics.loss is nan or metrics.loss = inf         NaN is a value, other than any number

A comparison needs a value: what a run does not have makes it false, with `!=`, `not in` and `not like` too. `not` before a comparison or
brackets turns the answer around: `not params.lr = 1` is also true of runs without that param, as is `params.lr is null`.

MLflow's own filters are read too: attributes.status = 'FINISHED', attributes.start_time > 1700000000000, tags.`a b` ILIKE '%x%'.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, false, func, not_, null, or_, select

from onward.errors import InvalidInput
from onward.model.run import RunState
from onward.tracker import schema
from onward.tracker.search.filter_tokens import FilterToken, syntax_error, tokenize, unquote
from onward.tracker.search.summary_columns import SUMMARY_FIELDS, summary_column

_runs, _params, _tags, _series, _experiments = schema.runs, schema.params, schema.tags, schema.series, schema.experiments
_DEEPEST = 40
_MOST_TERMS = 200

_ROOMS = {
    **dict.fromkeys(("params", "param", "parameters", "parameter"), "params"),
    **dict.fromkeys(("metrics", "metric"), "metrics"),
    **dict.fromkeys(("tags", "tag"), "tags"),
    **dict.fromkeys(("attributes", "attribute", "attr", "run", "runs"), "run"),
}
_FIELDS = {
    **dict.fromkeys(("state", "status"), "state"),
    **dict.fromkeys(("name", "run_name", "run name"), "name"),
    **dict.fromkeys(("id", "run_id", "run id"), "id"),
    **dict.fromkeys(("user", "user_id"), "user"),
    **dict.fromkeys(("created", "creation_time"), "created"),
    **dict.fromkeys(("started", "start_time"), "started"),
    **dict.fromkeys(("ended", "end_time"), "ended"),
    **dict.fromkeys(("step", "last_step"), "last_step"),
    **dict.fromkeys(("leg", "legs"), "leg"),
    **{name: name for name in ("updated", "experiment", "cluster", "source", "folder", "reason", "duration")},
    **{name: name for name in SUMMARY_FIELDS},
}
_TIMES = {"created", "started", "ended", "updated", "checkpoint"}
_NUMBERS = {"last_step", "leg", "duration", "progress", "queue_wait", "gpu_use"}
_STATES = {**{str(state): str(state) for state in RunState}, "scheduled": "submitted", "killed": "cancelled", "succeeded": "finished"}
_BEST = {"last": "last_value", "min": "min_value", "max": "max_value"}
_SIGNS = {"==": "=", "<>": "!="}
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])(?:\s+ago)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Target:
    """What a comparison is about: a room (params, metrics, tags, run) and a key in it; of metrics, which value."""

    room: str
    key: str
    best: str = "last_value"


def filter_condition(text: str, *, now: float) -> ColumnElement[bool] | None:
    """The condition on `runs` that a filter says; None where it is empty. Raises InvalidInput that points at what is wrong."""
    if not text.strip():
        return None
    return _Parser(text, now).whole()


def parse_orders(texts: Sequence[str]) -> list[tuple[Target, bool]]:
    """An order by several: `metrics.loss desc` is (the metric, True). Each text has one, or several with commas between them."""
    return [entry for text in texts for entry in _Parser(text, 0).orders()]


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
                column: ColumnElement[Any] = _column(target.key)
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


class _Parser:
    def __init__(self, text: str, now: float) -> None:
        self._text = text
        self._now = now
        self._words = tokenize(text)
        self._at = 0
        self._terms = 0

    def peek(self) -> FilterToken:
        return self._words[self._at]

    def take(self) -> FilterToken:
        word = self._words[self._at]
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def whole(self) -> ColumnElement[bool]:
        found = self._or(0)
        if self.peek().kind != "end":
            raise syntax_error(self._text, self.peek().at, "expected and, or, or the end")
        return found

    def _or(self, depth: int) -> ColumnElement[bool]:
        parts = [self._and(depth)]
        while self.peek().says("or"):
            self.take()
            parts.append(self._and(depth))
        return or_(*parts) if len(parts) > 1 else parts[0]

    def _and(self, depth: int) -> ColumnElement[bool]:
        parts = [self._not(depth)]
        while self.peek().says("and"):
            self.take()
            parts.append(self._not(depth))
        return and_(*parts) if len(parts) > 1 else parts[0]

    def _not(self, depth: int) -> ColumnElement[bool]:
        if depth > _DEEPEST:
            raise syntax_error(self._text, self.peek().at, "too many brackets")
        word = self.peek()
        if word.says("not"):
            self.take()
            return not_(self._not(depth + 1))
        if word.text == "(":
            self.take()
            inner = self._or(depth + 1)
            if self.take().text != ")":
                raise syntax_error(self._text, word.at, "this bracket is not closed")
            return inner
        return self._comparison()

    def orders(self) -> list[tuple[Target, bool]]:
        found: list[tuple[Target, bool]] = []
        while True:
            target = self.target()
            found.append((target, self.peek().says("asc", "desc") and self.take().says("desc")))
            word = self.take()
            if word.kind == "end":
                return found
            if word.text != ",":
                raise syntax_error(self._text, word.at, "an order is a name, then asc or desc; a comma, then the next")

    # ── one comparison ────────────────────────────────────────────────────────

    def target(self) -> Target:
        word = self.take()
        if word.kind != "name":
            raise syntax_error(self._text, word.at, "expected a name such as metrics.loss, params.lr, tags.team or state")
        if word.text.lower() in _BEST and self.peek().text == "(":
            self.take()
            inner = self.target()
            if inner.room != "metrics" or self.take().text != ")":
                raise syntax_error(self._text, word.at, f"{word.text}(…) takes a metric")
            return Target("metrics", inner.key, _BEST[word.text.lower()])
        head, dot, rest = word.text.partition(".")
        room = _ROOMS.get(head.lower()) if dot else "run"
        if room is None:
            raise self._unknown(word, head, list(_ROOMS))
        if room != "run":
            return Target(room, _key(rest))
        field = unquote(rest or head).lower()
        if field not in _FIELDS:
            raise self._unknown(word, field, list(_FIELDS))
        return Target("run", _FIELDS[field])

    def _unknown(self, word: FilterToken, name: str, known: list[str]) -> InvalidInput:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"; did you mean {near[0]}?" if near else "; a key stands after metrics., params. or tags."
        return syntax_error(self._text, word.at, f"nothing is called {name!r}{guess}")

    def _comparison(self) -> ColumnElement[bool]:
        self._terms += 1
        if self._terms > _MOST_TERMS:
            raise syntax_error(self._text, self.peek().at, f"more than {_MOST_TERMS} comparisons")
        start = self.peek()
        target = self.target()
        word = self.take()
        if word.says("is"):
            return self._is(target, word)
        negated = word.says("not")
        if negated:
            word = self.take()
        if word.says("in", "like", "ilike"):
            sign = word.text.lower()
            test = _Test(sign, self._list() if sign == "in" else [self._value()], self, start, negated)
        elif word.kind == "sign" and not negated:
            sign = _SIGNS.get(word.text, word.text)
            test = _Test("=" if sign == "!=" else sign, [self._value()], self, start, sign == "!=")
        else:
            raise syntax_error(self._text, word.at, "expected one of = != < <= > >= like ilike in is")
        return _has(target, test)

    def _is(self, target: Target, at: FilterToken) -> ColumnElement[bool]:
        negated = self.peek().says("not") and bool(self.take())
        what = self.take()
        if what.says("nan") and target.room == "metrics":
            return _has(target, _Test("=", [what], self, at, negated))
        if not what.says("null"):
            raise syntax_error(self._text, at.at, "expected is null or is not null; of a metric also is nan or is not nan")
        there = _has(target, None)
        return there if negated else not_(there)

    def _list(self) -> list[FilterToken]:
        opening = self.take()
        if opening.text != "(":
            raise syntax_error(self._text, opening.at, "expected a list such as ('a', 'b')")
        values = [self._value()]
        while (word := self.take()).text == ",":
            values.append(self._value())
        if word.text != ")":
            raise syntax_error(self._text, opening.at, "this list is not closed")
        return values

    def _value(self) -> FilterToken:
        word = self.take()
        if word.kind not in ("number", "string", "name") or word.says("and", "or", "not", "is", "in", "like"):
            raise syntax_error(self._text, word.at, "expected a value: a number, or a text in quotes")
        return word

    # ── values ────────────────────────────────────────────────────────────────

    def number(self, word: FilterToken) -> float:
        try:
            return float(unquote(word.text))
        except ValueError:
            raise syntax_error(self._text, word.at, "expected a number") from None

    def time(self, word: FilterToken) -> float:
        text = unquote(word.text)
        ago = _AGO.fullmatch(text.lower())
        if ago and word.kind != "number":
            return self._now - float(ago[1]) * _UNITS[ago[2]]
        try:
            value = float(text)
            return value / 1000 if abs(value) > 1e11 else value
        except ValueError:
            pass
        try:
            told = datetime.fromisoformat(text)
        except ValueError:
            raise syntax_error(self._text, word.at, "expected a time: '2026-01-31', '2026-01-31T12:00', '7d' for seven days ago") from None
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()

    def state(self, word: FilterToken) -> str:
        text = unquote(word.text).lower()
        if text not in _STATES:
            raise syntax_error(self._text, word.at, f"a state is one of {', '.join(RunState)}")
        return _STATES[text]


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison that awaits its column. `negated`: !=, not in, not like."""

    sign: str
    words: list[FilterToken]
    parser: _Parser
    start: FilterToken
    negated: bool = False

    def on(self, column: ColumnElement[Any], kind: str) -> ColumnElement[bool]:
        """Whether a value passes; false where there is none, never unknown."""
        if self.sign in ("like", "ilike"):
            if kind != "text":
                raise syntax_error(self.parser._text, self.start.at, f"{self.sign} is for texts")
            pattern = unquote(self.words[0].text)
            found: ColumnElement[bool] = column.like(pattern) if self.sign == "like" else func.lower(column).like(pattern.lower())
        else:
            found = self._compared(column, [self._value(word, kind) for word in self.words])
        return and_(column.is_not(None), not_(found) if self.negated else found)

    def on_metric(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        """The same of a metric that is there: null is NaN, which is other than any number, and neither more nor less."""
        if self.sign in ("like", "ilike"):
            raise syntax_error(self.parser._text, self.start.at, f"{self.sign} is for texts")
        told = [self.parser.number(word) for word in self.words]
        numbers, nan = [value for value in told if value == value], column.is_(None)
        asked = len(numbers) < len(told)
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
                return self.parser.number(word)
            case "time":
                return self.parser.time(word)
            case "state":
                return self.parser.state(word)
            case _:
                return unquote(word.text)


def _has(target: Target, test: _Test | None) -> ColumnElement[bool]:
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


def _by_number(test: _Test) -> bool:
    """A param is text: it is compared as a number where the other side is one, or where it is asked for more or less than one."""
    if test.sign in ("like", "ilike"):
        return False
    if all(word.kind == "number" for word in test.words):
        return True
    return test.sign not in ("=", "in") and all(re.fullmatch(r"[-+.\deE]+", unquote(w.text)) for w in test.words)


def _field(name: str, test: _Test | None) -> ColumnElement[bool]:
    column = _runs.c.started if name == "started" else _column(name)
    if test is None:
        return column.is_not(None)
    if name == "id":
        each = (test.on(_runs.c.run_id, "text"), test.on(_runs.c.hex_id, "text"))
        return and_(*each) if test.negated else or_(*each)
    kind = "time" if name in _TIMES else "number" if name in _NUMBERS else "state" if name == "state" else "text"
    if name == "state" and test.sign in ("like", "ilike"):
        kind = "text"
    return test.on(column, kind)


def _column(name: str) -> ColumnElement[Any]:
    match name:
        case "id":
            return _runs.c.run_id
        case "experiment":
            return select(_experiments.c.name).where(_experiments.c.id == _runs.c.experiment).scalar_subquery()
        case "duration":
            return case((_runs.c.started.is_(None), null()), else_=func.coalesce(_runs.c.ended, _runs.c.updated) - _runs.c.started)
        case "started":
            return func.coalesce(_runs.c.started, _runs.c.created)
        case _ if name in SUMMARY_FIELDS:
            return summary_column(name)
        case _:
            return _runs.c[name]


def _key(text: str) -> str:
    return unquote(text) if text[:1] in "\"'`" and text[-1:] == text[:1] else re.sub(r"[\"`]", "", text)
