"""Completion of filters: what is offered is there, is spelled as the language reads it, and comes quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from onward.tracker.search.completion import FIELDS
from onward.tracker.search.filter import filter_condition
from onward.tracker.search.run_order import parse_order
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def words(harness: Harness, prefix: str = "", of: str = "", **others: int) -> list[str]:
    more = "".join(f"&{name}={value}" for name, value in others.items())
    found = good(harness.client.get(f"/api/v1/filter-words?prefix={quote(prefix)}&of={quote(of)}{more}"))
    return [word["text"] for word in found["words"]]


def test_every_field_that_is_offered_can_be_compared() -> None:
    for name in FIELDS:
        assert filter_condition(f"{name} is not null", now=0) is not None
        assert parse_order(name)


def test_names_are_completed_from_fields_rooms_and_what_runs_have(harness: Harness) -> None:
    run = harness.run(params={"lr": 0.1, "layers": 3, "my key": "x"}, tags={"team": "blue", 'a"b': "c"})
    harness.log(run, "loss", [1.0])
    harness.log(run, "loss/val", [1.0])
    harness.log(run, "acc", [1.0])
    assert words(harness, "st") == ["state", "started", "step"]
    assert words(harness, "m") == ["metrics.", "min(metrics.", "max(metrics."]
    assert words(harness, "metrics.lo") == ["metrics.loss", "metrics.loss/val"]
    assert words(harness, "min(metrics.a") == ["min(metrics.acc"]
    assert words(harness, "min(") == ["min(metrics."]
    assert words(harness, "params.") == ["params.layers", "params.lr", 'params."my key"']
    assert words(harness, 'params."my') == ['params."my key"']
    assert words(harness, "params.", limit=1) == ["params.layers"]
    assert words(harness, "tags.") == ['tags.`a"b`', "tags.team"]
    assert words(harness, "params.%") == []
    assert words(harness, "nothing") == []


def test_values_are_those_that_runs_have_and_are_read_back_by_the_filter(harness: Harness) -> None:
    harness.run(params={"lr": 0.1, "opt": "it's"}, tags={"team": "blue one"}, name="first")
    harness.run(params={"lr": 0.2}, experiment="other")
    assert words(harness, "r", "state") == ["running"]
    assert words(harness, "", "params.lr") == ["0.1", "0.2"]
    assert words(harness, "'bl", "tags.team") == ["'blue one'"]
    assert words(harness, "o", "experiment") == ["'other'"]
    assert words(harness, "", "source") == ["'by-hand'"]
    assert words(harness, "", "metrics.loss") == []
    (odd,) = words(harness, "it", "params.opt")
    found = good(harness.client.get(f"/api/v1/runs?filter={quote(f'params.opt = {odd}')}"))
    assert (len(found["runs"]), found["read_as"]) == (1, "filter")


def test_text_that_no_store_takes_is_not_there(harness: Harness) -> None:
    assert harness.client.get("/api/v1/filter-words?prefix=%00").status == 404
