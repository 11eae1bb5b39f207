"""Points by column: what clients usually send is taken at once, and says the same as the careful readers; the rest is left to them."""

from __future__ import annotations

from typing import Any

import pytest

from onward.api.ingest.columns import in_columns
from onward.api.ingest.point_parser import checked_name, many_points
from onward.model.mlflow import wire
from onward.tracker.ingest.receive import to_columns

NOW = 1_790_000_000.25


def key(name: str) -> str:
    return wire.key(name, "metric")


def test_our_own_points_are_read_as_one_by_one() -> None:
    items = [
        {"name": name, "step": step, "value": value, "timestamp": at}
        for step in range(5)
        for name, value, at in (("loss", 0.1 * step, 1_790_000_000.1 + step), ("n", step, 1_790_000_000))
    ]
    assert in_columns(items, "name", checked_name, NOW) == to_columns(many_points({"points": items}, NOW))[0]


def test_times_in_milliseconds_or_left_out_are_those_of_one_by_one() -> None:
    for more in ({"timestamp": 1_790_000_000_123}, {}):
        items = [{"name": "loss", "step": step, "value": 1.5, **more} for step in range(3)]
        assert in_columns(items, "name", checked_name, NOW) == to_columns(many_points({"points": items}, NOW))[0]


def test_points_of_mlflow_are_read_as_one_by_one() -> None:
    items = [{"key": f"train/{n % 2}", "step": n, "value": n / 3, "timestamp": 1_790_000_000_000 + 7 * n} for n in range(9)]
    assert in_columns(items, "key", key, None) == to_columns(wire.points(items))[0]


@pytest.mark.parametrize(
    "odd",
    [
        {"value": "NaN"},
        {"value": True},
        {"value": None},
        {"value": 10**400},
        {"step": "3"},
        {"step": 1.0},
        {"step": True},
        {"step": 1 << 63},
        {"timestamp": "1790000000000"},
        {"timestamp": -1},
        {"timestamp": 1.5e12},
        {"timestamp": 10**15},
        {"timestamp": None},
        {"key": "../up"},
        {"key": ""},
        {"key": 3},
        {"key": ["a"]},
    ],
)
def test_one_unusual_item_leaves_all_to_the_careful_readers(odd: dict[str, Any]) -> None:
    usual = {"key": "loss", "step": 1, "value": 0.5, "timestamp": 1_790_000_000_000}
    assert in_columns([usual, {**usual, **odd}], "key", key, None) is None
    assert in_columns([{**usual, **odd}, usual], "key", key, None) is None


def test_what_is_no_list_of_objects_is_left_to_them_too() -> None:
    items: Any
    for items in ([], [3], ["key"], [[]], [{}], [None]):
        assert in_columns(items, "key", key, None) is None
