"""The best run of every experiment: by the metric that is asked for, or the one that most runs have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def test_each_experiment_has_one_best_run_by_its_best_value_and_archived_ones_do_not_count(harness: Harness) -> None:
    logged: list[list[float | str]] = [[3.0, 1.0, 2.0], [1.0, "NaN"], [0.5]]
    night = [harness.run(name=f"n{i}", experiment="night") for i in range(3)]
    day = harness.run(name="d", experiment="day")
    for run, values in zip(night, logged, strict=True):
        harness.log(run, "loss", values)
        harness.log(run, "system/cpu_percent", [1.0])
    harness.log(day, "loss", [7.0])
    harness.log(day, "accuracy", [0.1, 0.9, 0.4])
    harness.opened.tracker.runs.archive(night[2])
    answer = good(harness.client.get("/api/v1/bests"))
    assert (answer["metric"], answer["mode"]) == ("loss", "min")
    assert [(best["name"], best["value"], best["step"]) for best in answer["bests"]] == [("n0", 1.0, 1), ("d", 7.0, 0)]
    most = good(harness.client.get("/api/v1/bests?metric=accuracy"))
    assert (most["mode"], [(best["run_id"], best["value"]) for best in most["bests"]]) == ("max", [(day, 0.9)])
    worst = good(harness.client.get("/api/v1/bests?metric=loss&mode=max"))
    assert [best["value"] for best in worst["bests"]] == [3.0, 7.0]


def test_where_nobody_logs_anything_there_is_no_metric_and_no_best(harness: Harness) -> None:
    harness.run()
    assert good(harness.client.get("/api/v1/bests")) == {"metric": None, "mode": "max", "bests": []}
    assert harness.client.get("/api/v1/bests?metric=%00").status == 404
