"""MLflow's filters and orders: its own grammar, which is narrower than ours, read into clauses that any table can be asked by.

    metrics.acc > 0.9 AND params.lr = '0.01' AND tags.`my key` ILIKE 'a%' AND attributes.run_id IN ('a', 'b')

Clauses are joined by AND alone; texts stand in quotes; metrics and times are numbers. What MLflow refuses is refused here too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onward.errors import InvalidInput
from onward.tracker.search.filter_tokens import FilterToken, scan

_WORD: Final = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"(?![.\w]))
    | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    | (?P<sign>>=|<=|!=|=|>|<)
    | (?P<mark>[(),])
    | (?P<name>(?:(?:[A-Za-z_][\w-]*|`[A-Za-z_]+`)\.)?(?:`[^`]*`|"[^"]*"|'[^']*'|[^\s`"'=<>!(),]+))
    )""",
    re.VERBOSE,
)
_ROOMS: Final = {
    **dict.fromkeys(("metric", "metrics"), "metric"),
    **dict.fromkeys(("param", "params", "parameter", "parameters"), "param"),
    **dict.fromkeys(("tag", "tags"), "tag"),
    **dict.fromkeys(("attribute", "attributes", "attr", "run"), "attribute"),
    **dict.fromkeys(("dataset", "datasets"), "dataset"),
}
NUMBERS: Final = (">", ">=", "<", "<=", "=", "!=")
TEXTS: Final = ("=", "!=", "LIKE", "ILIKE")
PRESENCE: Final = ("IS NULL", "IS NOT NULL")
LISTS: Final = ("IN", "NOT IN")
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Clause:
    """`sign` is one of NUMBERS, TEXTS, THERE, LISTS; `value` a number, a text, a tuple of texts, or None."""

    room: str  # metric, param, tag, attribute, dataset
    key: str
    sign: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Order:
    room: str
    key: str
    down: bool


@dataclass(frozen=True, kw_only=True)
class FilterGrammar:
    """What a table can be asked: its attributes by the names they go by (texts, numbers, and those that take a list), and its rooms.

    `ordered`: what it can be ordered by, of attributes; `rooms`: by the words that stand before a key; `pairs`: signs for tags and params.
    """

    texts: Mapping[str, str]
    numbers: Mapping[str, str]
    ordered: frozenset[str]
    listed: frozenset[str] = frozenset()
    rooms: Mapping[str, str] = field(default_factory=lambda: _ROOMS)
    order_rooms: frozenset[str] = frozenset({"attribute", "tag", "param", "metric"})
    pairs: tuple[str, ...] = (*TEXTS, *PRESENCE)

    def attribute(self, name: str) -> str:
        found = self.texts.get(name) or self.numbers.get(name)
        if found is None:
            known = ", ".join(sorted({*self.texts, *self.numbers}))
            raise InvalidInput(f"Invalid attribute key {name!r}", hint=f"Valid keys are {known}")
        return found


RUNS: Final = FilterGrammar(
    texts={
        **dict.fromkeys(("run_name", "run name", "Run name", "Run Name"), "run_name"),
        **{name: name for name in ("run_id", "user_id", "status", "artifact_uri")},
    },
    numbers={**dict.fromkeys(("start_time", "created", "Created"), "start_time"), "end_time": "end_time"},
    ordered=frozenset({"run_id", "run_name", "user_id", "status", "artifact_uri", "start_time", "end_time", "created", "Created"}),
    listed=frozenset({"run_id"}),
)
EXPERIMENTS: Final = FilterGrammar(
    texts={"name": "name", "experiment_id": "experiment_id"},
    numbers={"creation_time": "creation_time", "last_update_time": "last_update_time"},
    ordered=frozenset({"name", "experiment_id", "creation_time", "last_update_time"}),
    rooms={"attribute": "attribute", "tag": "tag", "tags": "tag"},
    order_rooms=frozenset({"attribute"}),
)
_OF_MODELS: Final = ("name", "model_id", "model_type", "status", "source_run_id", "experiment_id", "artifact_location")
_TIMES_OF_MODELS: Final = {
    **dict.fromkeys(("creation_timestamp", "creation_timestamp_ms", "creation_time"), "creation_time"),
    **dict.fromkeys(("last_updated_timestamp", "last_updated_timestamp_ms"), "last_update_time"),
}
MODELS: Final = FilterGrammar(
    texts={name: name for name in _OF_MODELS},
    numbers=_TIMES_OF_MODELS,
    ordered=frozenset({*_OF_MODELS, *_TIMES_OF_MODELS}),
    listed=frozenset(_OF_MODELS),
    rooms={word: _ROOMS[word] for word in ("attributes", "tags", "params", "metrics")},
    order_rooms=frozenset({"attribute", "metric"}),
    pairs=(*TEXTS, *LISTS),
)


def clauses(text: str | None, kind: FilterGrammar) -> list[Clause]:
    """What a filter says; nothing where it is empty. Raises InvalidInput that quotes what is wrong."""
    words = _words(text or "")
    if text and not words:
        raise InvalidInput(f"Invalid filter string {text!r}: it is empty", hint="leave the filter out, or write a clause")
    found: list[Clause] = []
    at = 0
    while at < len(words):
        clause, at = _clause(words, at, kind, text or "")
        found.append(clause)
        if at < len(words):
            if words[at].text.upper() != "AND":
                raise InvalidInput(f"Invalid clause(s) in filter string {text!r}: {words[at].text!r}", hint="clauses are joined by AND")
            at += 1
    return found


def orders(texts: Sequence[str], kind: FilterGrammar) -> list[Order]:
    return [_order(text, kind) for text in texts]


def _order(text: str, kind: FilterGrammar) -> Order:
    match = re.fullmatch(r"\s*(.+?)(?:\s+(asc|desc))?\s*", text, re.IGNORECASE)
    words = _words(match[1]) if match else []
    if match is None or len(words) != 1 or words[0].kind != "name":
        raise InvalidInput(f"Invalid order_by clause {text!r}", hint="Expected a key such as metrics.acc, then ASC or DESC")
    room, key = _target(words[0].text, kind)
    name = _unquoted(words[0].text.rpartition(".")[2])
    if room not in kind.order_rooms or (room == "attribute" and name not in kind.ordered):
        raise InvalidInput(f"Invalid order_by key in {text!r}", hint=f"Valid attributes are {', '.join(sorted(kind.ordered))}")
    return Order(room, key, (match[2] or "").lower() == "desc")


def _words(text: str) -> list[FilterToken]:
    if len(text) > _LONGEST:
        raise InvalidInput(f"a filter may have {_LONGEST} characters, this one has {len(text)}")
    text = text.strip()
    found, end = scan(text, _WORD)
    if end < len(text):
        raise InvalidInput(f"Invalid filter string {text!r}: cannot read it from {text[end : end + 20]!r} on")
    return found


def _clause(words: list[FilterToken], at: int, kind: FilterGrammar, text: str) -> tuple[Clause, int]:
    sort, word = words[at].kind, words[at].text
    if sort != "name" and not (sort == "string" and word[0] == '"'):
        raise InvalidInput(f"Invalid filter string {text!r}: expected a key such as metrics.acc, found {word!r}")
    room, key = _target(word, kind)
    sign, at = _sign(words, at + 1, text)
    _check_sign(room, key, sign, kind, text)
    if sign in PRESENCE:
        return Clause(room, key, sign), at
    if sign in LISTS:
        values, at = _list(words, at, text)
        return Clause(room, key, sign, values), at
    if at >= len(words):
        raise InvalidInput(f"Invalid filter string {text!r}: a value is missing at the end")
    value_sort, value = words[at].kind, words[at].text
    if room == "metric" or (room == "attribute" and key in kind.numbers.values()):
        if value_sort != "number":
            raise InvalidInput(f"Expected a number for {word} in {text!r}, found {value}")
        return Clause(room, key, sign, float(value)), at + 1
    if value_sort != "string":
        raise InvalidInput(f"Expected a quoted string value for {word} in {text!r}, found {value}")
    return Clause(room, key, sign, _unquoted(value)), at + 1


def _target(word: str, kind: FilterGrammar) -> tuple[str, str]:
    head, dot, rest = word.partition(".")
    if not dot or word[0] == '"':
        return "attribute", kind.attribute(_unquoted(word))
    room = kind.rooms.get(_unquoted(head))
    if room is None or not rest:
        raise InvalidInput(f"Invalid entity type {head!r} in {word!r}", hint=f"Valid entity types are {', '.join(sorted(kind.rooms))}")
    key = _unquoted(rest)
    if room == "dataset" and key not in ("name", "digest", "context"):
        raise InvalidInput(f"Invalid dataset key {key!r}", hint="Valid keys are name, digest and context")
    return room, kind.attribute(key) if room == "attribute" else key


def _sign(words: list[FilterToken], at: int, text: str) -> tuple[str, int]:
    said = [word.text.upper() for word in words[at : at + 3]]
    for length in (3, 2, 1):
        sign = " ".join(said[:length])
        if len(said) >= length and sign in (*NUMBERS, *TEXTS, *PRESENCE, *LISTS):
            return sign, at + length
    raise InvalidInput(f"Invalid filter string {text!r}: expected a comparison after {words[at - 1].text!r}")


def _check_sign(room: str, key: str, sign: str, kind: FilterGrammar, text: str) -> None:
    if room == "metric" or (room == "attribute" and key in kind.numbers.values()):
        allowed: tuple[str, ...] = NUMBERS
    elif room == "attribute":
        allowed = (*TEXTS, *LISTS) if key in kind.listed else TEXTS
    elif room == "dataset":
        allowed = (*TEXTS, *LISTS)
    else:
        allowed = kind.pairs
    if sign not in allowed:
        raise InvalidInput(f"Invalid comparator {sign!r} for {room} {key!r} in {text!r}", hint=f"Valid ones are {', '.join(allowed)}")


def _list(words: list[FilterToken], at: int, text: str) -> tuple[tuple[str, ...], int]:
    values: list[str] = []
    if at >= len(words) or words[at].text != "(":
        raise InvalidInput(f"Invalid filter string {text!r}: expected a list such as ('a', 'b')")
    at += 1
    while at < len(words):
        word = words[at].text
        if words[at].kind == "string":
            values.append(_unquoted(word))
        elif word == ")" and values:
            return tuple(values), at + 1
        elif word != ",":
            break
        at += 1
    raise InvalidInput(f"Invalid filter string {text!r}: expected a list of quoted strings such as ('a', 'b')")


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"`":
        return word[1:-1].replace("''", "'") if word[0] == "'" else word[1:-1]
    return word


# ── clauses on values at hand (experiments, models: few) ──────────────────────


def holds(clause: Clause, value: str | float | None) -> bool:
    """Whether a value passes. None: there is none."""
    match clause.sign:
        case "IS NULL":
            return value is None
        case "IS NOT NULL":
            return value is not None
        case _ if value is None:
            return False
        case "=":
            return bool(value == clause.value)
        case "!=":
            return bool(value != clause.value)
        case "LIKE":
            return _like(clause.value).fullmatch(str(value)) is not None
        case "ILIKE":
            return _like(clause.value, re.IGNORECASE).fullmatch(str(value)) is not None
        case "IN":
            return value in clause.value
        case "NOT IN":
            return value not in clause.value
    assert isinstance(value, int | float)
    limit: float = clause.value
    return {">": value > limit, ">=": value >= limit, "<": value < limit, "<=": value <= limit}[clause.sign]


def _like(pattern: str, flags: int = 0) -> re.Pattern[str]:
    parts = [".*" if char == "%" else "." if char == "_" else re.escape(char) for char in pattern]
    return re.compile("".join(parts), flags | re.DOTALL)
