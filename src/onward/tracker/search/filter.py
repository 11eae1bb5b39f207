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

from sqlalchemy import ColumnElement, and_, not_, or_

from onward.errors import InvalidInput
from onward.tracker.search.filter_sql import Comparison, Target, run_has
from onward.tracker.search.filter_tokens import FilterToken, syntax_error, tokenize, unquote
from onward.tracker.search.filter_values import FilterValues
from onward.tracker.search.summary_columns import SUMMARY_FIELDS

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
    **{name: name for name in ("updated", "experiment", "cluster", "source", "folder", "reason", "duration", "pipeline")},
    **{name: name for name in SUMMARY_FIELDS},
}
_BEST = {"last": "last_value", "min": "min_value", "max": "max_value"}
_SIGNS = {"==": "=", "<>": "!="}


def filter_condition(text: str, *, now: float) -> ColumnElement[bool] | None:
    """The condition on `runs` that a filter says; None where it is empty. Raises InvalidInput that points at what is wrong."""
    if not text.strip():
        return None
    return FilterParser(text, now=now).whole()


class FilterParser:
    def __init__(self, text: str, *, now: float) -> None:
        self._text = text
        self._values = FilterValues(text, now)
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
        guess = f"; did you mean {near[0]}?" if near else "; keys begin with metrics., params. or tags."
        return syntax_error(self._text, word.at, f"unknown name {name!r}{guess}")

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
            test = Comparison(sign, self._list() if sign == "in" else [self._value()], self._values, start, negated)
        elif word.kind == "sign" and not negated:
            sign = _SIGNS.get(word.text, word.text)
            test = Comparison("=" if sign == "!=" else sign, [self._value()], self._values, start, sign == "!=")
        else:
            raise syntax_error(self._text, word.at, "expected one of = != < <= > >= like ilike in is")
        return run_has(target, test)

    def _is(self, target: Target, at: FilterToken) -> ColumnElement[bool]:
        negated = self.peek().says("not") and bool(self.take())
        what = self.take()
        if what.says("nan") and target.room == "metrics":
            return run_has(target, Comparison("=", [what], self._values, at, negated))
        if not what.says("null"):
            raise syntax_error(self._text, at.at, "expected is null or is not null; of a metric also is nan or is not nan")
        there = run_has(target, None)
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
            raise syntax_error(self._text, word.at, "expected a value: a number, or a quoted string")
        return word


def _key(text: str) -> str:
    return unquote(text) if text[:1] in "\"'`" and text[-1:] == text[:1] else re.sub(r"[\"`]", "", text)
