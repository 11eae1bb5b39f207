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
from tests.unit.test_api_routes import Scene, good


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with tracker_in(tmp_path) as opened:
        yield Scene(tmp_path, opened)


def words(scene: Scene, prefix: str = "", of: str = "", **others: int) -> list[str]:
    more = "".join(f"&{name}={value}" for name, value in others.items())
    found = good(scene.client.get(f"/api/v1/filter-words?prefix={quote(prefix)}&of={quote(of)}{more}"))
    return [word["text"] for word in found["words"]]


def test_every_field_that_is_offered_can_be_compared() -> None:
    for name in FIELDS:
        assert filter_condition(f"{name} is not null", now=0) is not None
        assert parse_order(name)


def test_names_are_completed_from_fields_rooms_and_what_runs_have(scene: Scene) -> None:
    run = scene.run(params={"lr": 0.1, "layers": 3, "my key": "x"}, tags={"team": "blue", 'a"b': "c"})
    scene.log(run, "loss", [1.0])
    scene.log(run, "loss/val", [1.0])
    scene.log(run, "acc", [1.0])
    assert words(scene, "st") == ["state", "started", "step"]
    assert words(scene, "m") == ["metrics.", "min(metrics.", "max(metrics."]
    assert words(scene, "metrics.lo") == ["metrics.loss", "metrics.loss/val"]
    assert words(scene, "min(metrics.a") == ["min(metrics.acc"]
    assert words(scene, "min(") == ["min(metrics."]
    assert words(scene, "params.") == ["params.layers", "params.lr", 'params."my key"']
    assert words(scene, 'params."my') == ['params."my key"']
    assert words(scene, "params.", limit=1) == ["params.layers"]
    assert words(scene, "tags.") == ['tags.`a"b`', "tags.team"]
    assert words(scene, "params.%") == []
    assert words(scene, "nothing") == []


def test_values_are_those_that_runs_have_and_are_read_back_by_the_filter(scene: Scene) -> None:
    scene.run(params={"lr": 0.1, "opt": "it's"}, tags={"team": "blue one"}, name="first")
    scene.run(params={"lr": 0.2}, experiment="other")
    assert words(scene, "r", "state") == ["running"]
    assert words(scene, "", "params.lr") == ["0.1", "0.2"]
    assert words(scene, "'bl", "tags.team") == ["'blue one'"]
    assert words(scene, "o", "experiment") == ["'other'"]
    assert words(scene, "", "source") == ["'by-hand'"]
    assert words(scene, "", "metrics.loss") == []
    (odd,) = words(scene, "it", "params.opt")
    found = good(scene.client.get(f"/api/v1/runs?filter={quote(f'params.opt = {odd}')}"))
    assert (len(found["runs"]), found["read_as"]) == (1, "filter")


def test_text_that_no_store_takes_is_not_there(scene: Scene) -> None:
    assert scene.client.get("/api/v1/filter-words?prefix=%00").status == 404
