"""What a relay was told, in the tracker: tailed or pushed, once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from onward.tracker import schema
from onward.tracker.runs.artifacts import artifacts_of
from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.databases import new_database

MODEL = f"m-{'a' * 32}"


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with Tracker.open(new_database(tmp_path / "onward.db")) as opened:
        yield opened


@pytest.fixture
def run(tracker: Tracker) -> str:
    return tracker.runs.create(NewRun(name="first", run_id="abcdefgh", experiment="digits", source="onward")).run_id


def tell(tracker: Tracker, run: str, *records: dict[str, Any], writer: str = "train-relay") -> None:
    """Twice, as one that is tailed and pushed comes."""
    numbered = [{"n": n, "t": 1.7e9 + n, **record} for n, record in enumerate(records)]
    for _ in range(2):
        assert tracker.ingest.records(run, 1, writer, numbered).refused == 0


def test_models_with_all_that_belongs_to_them(tracker: Tracker, run: str) -> None:
    model = {"id": MODEL, "name": "net", "kind": "torch", "params": {"p": "1"}, "tags": {"a": "b", "c": "d"}}
    metric = {"model": MODEL, "key": "acc", "value": 0.5, "step": 1, "time": 1.7e9, "dataset": "d", "digest": "1"}
    tell(
        tracker,
        run,
        {"kind": "relay"},
        {"kind": "model", "model": model},
        {"kind": "model-metrics", "metrics": [metric, {**metric, "value": float("nan")}, {**metric, "model": f"m-{'b' * 32}"}]},
        {"kind": "model", "model": {"id": MODEL, "status": "READY", "untag": ["a"]}},
        {"kind": "outputs", "models": [[MODEL, 3]]},
        {"kind": "inputs", "datasets": [{"name": "d", "digest": "1", "source": "x.csv", "tags": {"k": "v"}}], "models": [MODEL]},
    )
    found = tracker.models.get(MODEL)
    assert (found.name, found.kind, found.status, found.params, found.tags) == ("net", "torch", "READY", {"p": "1"}, {"c": "d"})
    assert found.experiment == tracker.runs.get(run).experiment
    assert [(m.key, m.step, m.dataset) for m in found.metrics] == [("acc", 1, "d")] * 2
    inner = tracker.runs.get(run).inner
    assert tracker.models.outputs([inner]) == {inner: [(MODEL, 3)]}
    datasets, models = tracker.models.inputs([inner])[inner]
    assert (datasets[0].name, datasets[0].source, datasets[0].tags, models) == ("d", "x.csv", {"k": "v"}, [MODEL])
    tell(tracker, run, {"kind": "model", "model": {"id": MODEL, "deleted": True}}, writer="other")
    assert tracker.models.of([found.experiment]) == []


def test_a_run_changes_its_own_models_alone(tracker: Tracker, run: str) -> None:
    other = tracker.runs.create(NewRun(name="second", run_id="bcdefghi", experiment="digits", source="onward")).run_id
    nobodys = tracker.models.create(tracker.runs.get(run).experiment, name="loose", tags={}, params={}).id
    tell(tracker, run, {"kind": "model", "model": {"id": MODEL, "name": "net", "status": "READY", "tags": {"a": "b"}}})
    before = [tracker.models.get(id) for id in (MODEL, nobodys)]
    for number, id in enumerate((MODEL, nobodys)):
        tell(
            tracker,
            other,
            {"kind": "model", "model": {"id": id, "name": "mine now", "status": "UPLOAD_FAILED", "tags": {"x": "y"}, "untag": ["a"]}},
            {"kind": "model", "model": {"id": id, "params": {"p": "1"}, "deleted": True}},
            {"kind": "model-metrics", "metrics": [{"model": id, "key": "acc", "value": 1.0, "step": 1, "time": 1.7e9}]},
            {"kind": "outputs", "models": [[id, 3]]},
            {"kind": "inputs", "models": [id]},
            writer=f"writer-{number}",
        )
    assert [tracker.models.get(id) for id in (MODEL, nobodys)] == before
    inner = tracker.runs.get(other).inner
    assert tracker.models.outputs([inner]) == {}
    assert sorted(tracker.models.inputs([inner])[inner][1]) == sorted([MODEL, nobodys])  # it may say what went into it


def test_tags_files_and_notes(tracker: Tracker, run: str) -> None:
    tell(
        tracker,
        run,
        {"kind": "tags", "tags": {"a": "1", "b": "2"}},
        {"kind": "untag", "tags": ["a", "never there"]},
        {"kind": "artifact", "path": "plots/a.png", "bytes": 7, "sha256": "f" * 64, "stored": True},
        {"kind": "artifact", "path": "/data/m.pt", "type": "model", "bytes": 9, "stored": False},
        {"kind": "artifact", "path": "b", "bytes": 1, "stored": True},
        {"kind": "artifact", "path": "b", "gone": True},
        {"kind": "alert", "title": "low", "text": "0.9 is below 0.95", "level": "WARN"},
    )
    assert tracker.runs.view(run).tags == {"b": "2"}
    assert [(a.path, a.kind, a.bytes, a.stored) for a in artifacts_of(tracker, run)] == [
        ("/data/m.pt", "model", 9, False),
        ("plots/a.png", "", 7, True),
    ]
    with tracker.reading() as connection:
        assert list(connection.execute(select(schema.notes.c.text)).scalars()) == ["WARN: low\n0.9 is below 0.95"]


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "model", "model": {"id": "../x"}},
        {"kind": "model", "model": 7},
        {"kind": "model", "model": {"id": MODEL, "name": "x" * 9999, "status": None, "params": {"": 1, "k": {"a": [1]}}, "tags": [1]}},
        {"kind": "model-metrics", "metrics": [7, {"model": MODEL, "key": "", "value": 1}, {"model": MODEL, "key": "k", "value": "x"}]},
        {"kind": "model-metrics", "metrics": [{"model": [], "key": "k"}, {"model": MODEL, "key": "k", "value": 10**400}]},
        {"kind": "inputs", "datasets": "x", "models": [None, 7]},
        {"kind": "inputs", "datasets": [{}, {"name": "n\x00", "digest": 7}, {"name": "n\x00", "digest": 7}]},
        {"kind": "outputs", "models": [[MODEL], 7, [MODEL, "x"], [MODEL, 1], [MODEL, 2]]},
        {"kind": "artifact"},
        {"kind": "artifact", "path": "x" * 5000, "bytes": -1, "sha256": 7, "type": "\ud800"},
        {"kind": "untag", "tags": [7, None]},
        {"kind": "alert"},
        {"kind": "something newer"},
    ],
    ids=lambda record: record["kind"],
)
def test_a_record_that_is_odd_keeps_no_other_from_being_read(tracker: Tracker, run: str, odd: dict[str, Any]) -> None:
    tell(tracker, run, odd, {"s": 1, "m": {"loss": 0.5}})
    assert [point.step for point in tracker.series.points(run, "loss")] == [1]


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        ({"loss": 10**400, "acc": 1}, {"acc": 1.0}),
        ({"loss": "x", "acc": None, "a": [1]}, {}),
        ({"loss": "Infinity", "acc": "-Infinity"}, {"loss": math.inf, "acc": -math.inf}),
        ({"loss": 10**300, "acc": True}, {"loss": 1e300, "acc": 1.0}),
        ({"": 1, "x" * 999: 1, "acc": 2}, {"acc": 2.0}),
    ],
)
def test_values_that_are_no_numbers_are_told_of_and_the_others_are_kept(
    tracker: Tracker, run: str, record: dict[str, Any], kept: dict[str, float]
) -> None:
    taken = tracker.ingest.records(run, 1, "train", [{"n": 0, "t": 1.7e9, "s": 1, "m": record}])
    assert (taken.points, bool(taken.refused)) == (len(kept), len(kept) < len(record))
    assert {key: tracker.series.points(run, key)[0].value for key in kept} == kept


@pytest.mark.parametrize("odd", [{"n": True}, {"n": 1.5}, {"n": "1"}])
def test_a_number_that_is_none_is_refused(tracker: Tracker, run: str, odd: dict[str, Any]) -> None:
    assert tracker.ingest.records(run, 1, "train", [{"t": 1.7e9, "s": 1, "m": {"loss": 1}, **odd}]).refused == 1


def test_a_total_that_is_none_is_passed_over(tracker: Tracker, run: str) -> None:
    tell(tracker, run, *({"kind": "init", "total": total} for total in (True, 1.5, "9", -1, 10**30)))
    assert tracker.runs.get(run).total_steps is None


def test_the_project_of_a_run_by_hand_is_its_experiment(tracker: Tracker) -> None:
    by_hand = tracker.runs.create(NewRun(name="mine", run_id="f" * 32, source="by-hand")).run_id
    ours = tracker.runs.create(NewRun(name="ours", run_id="abcdefgh", experiment="digits", source="onward")).run_id
    for run in (by_hand, ours):
        tell(tracker, run, {"kind": "init", "experiment": "sweep", "params": {"lr": 1}})
    names = [tracker.experiments.get(tracker.runs.get(run).experiment).name for run in (by_hand, ours)]
    assert names == ["sweep", "digits"]
