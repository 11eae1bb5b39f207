"""Filters that cannot be used say where and why."""

from __future__ import annotations

import pytest

from onward.errors import InvalidInput
from onward.tracker.search.filter import filter_condition
from onward.tracker.search.run_order import parse_order, parse_orders


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("metrics.loss", "expected one of = !="),
        ("metrics.loss < ", "expected a value"),
        ("metrics.loss < 'abc'", "expected a number"),
        ("metrics.loss like 'a%'", "like works only on text"),
        ("metric.loss < 1 metrics.b > 2", "expected and, or, or the end"),
        ("(state = failed", "not closed"),
        ("state in (failed, running", "not closed"),
        ("state in failed", "expected a list"),
        ("state = sleeping", "a state is one of submitted, running"),
        ("statt = failed", "did you mean state"),
        ("parms.lr = 1", "did you mean params"),
        ("lr = 1", "keys begin with"),
        ("min(params.lr) < 1", "takes a metric"),
        ("created > 'yesterday'", "expected a time"),
        ("tags.a is maybe", "expected is null"),
        ("tags.a is nan", "of a metric also is nan"),
        ("metrics.loss not like 'a%'", "like works only on text"),
        ("metrics.loss in (1, 'b')", "expected a number"),
        ("metrics.loss not < 1", "expected one of"),
        ("params.lr = 1; drop table runs", "not allowed in a filter"),
        ("= 1", "expected a name"),
        ("not " * 50 + "state = failed", "too many brackets"),
        ("(" * 50 + "state = failed" + ")" * 50, "too many brackets"),
        (" or ".join(["state = failed"] * 201), "more than 200"),
        ("a" * 10_001, "at most 10000"),
    ],
)
def test_a_wrong_filter_is_told_with_its_place(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as raised:
        filter_condition(text, now=0)
    assert raised.value.hint


@pytest.mark.parametrize("text", ["", "metrics.loss sideways", "metrics.loss asc desc", "lr", "7", "name, state", "name,", ","])
def test_a_wrong_order_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_order(text)


def test_an_order_may_name_several_with_commas_or_in_texts_of_their_own() -> None:
    apart = parse_orders(["metrics.loss desc", "params.lr", "created asc"])
    assert apart == parse_orders(["metrics.loss desc, params.lr", "created"]) == parse_orders(["metrics.loss desc,params.lr asc , created"])
    assert [(target.room, target.key, down) for target, down in apart] == [
        ("metrics", "loss", True),
        ("params", "lr", False),
        ("run", "created", False),
    ]
    with pytest.raises(InvalidInput, match="a comma, then the next"):
        parse_orders(["name state"])


def test_values_are_bound_never_part_of_the_statement() -> None:
    condition = filter_condition("params.lr = 'x'' or 1=1 --' and tags.`k'; --` like '%;%'", now=0)
    assert condition is not None
    assert "1=1" not in str(condition)
    assert "--" not in str(condition)


def test_an_empty_filter_is_none() -> None:
    assert filter_condition("  ", now=0) is None
