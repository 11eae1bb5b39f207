"""The best run of every experiment: by the metric that is asked for, or the one that most runs have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import tracker_in
from tests.unit.test_api_routes import Scene, good


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with tracker_in(tmp_path) as opened:
        yield Scene(tmp_path, opened)


def test_each_experiment_has_one_best_run_by_its_best_value_and_archived_ones_do_not_count(scene: Scene) -> None:
    logged: list[list[float | str]] = [[3.0, 1.0, 2.0], [1.0, "NaN"], [0.5]]
    night = [scene.run(name=f"n{i}", experiment="night") for i in range(3)]
    day = scene.run(name="d", experiment="day")
    for run, values in zip(night, logged, strict=True):
        scene.log(run, "loss", values)
        scene.log(run, "system/cpu_percent", [1.0])
    scene.log(day, "loss", [7.0])
    scene.log(day, "accuracy", [0.1, 0.9, 0.4])
    scene.opened.tracker.runs.archive(night[2])
    told = good(scene.client.get("/api/v1/bests"))
    assert (told["metric"], told["mode"]) == ("loss", "min")
    assert [(best["name"], best["value"], best["step"]) for best in told["bests"]] == [("n0", 1.0, 1), ("d", 7.0, 0)]
    most = good(scene.client.get("/api/v1/bests?metric=accuracy"))
    assert (most["mode"], [(best["run_id"], best["value"]) for best in most["bests"]]) == ("max", [(day, 0.9)])
    worst = good(scene.client.get("/api/v1/bests?metric=loss&mode=max"))
    assert [best["value"] for best in worst["bests"]] == [3.0, 7.0]


def test_where_nobody_logs_anything_there_is_no_metric_and_no_best(scene: Scene) -> None:
    scene.run()
    assert good(scene.client.get("/api/v1/bests")) == {"metric": None, "mode": "max", "bests": []}
    assert scene.client.get("/api/v1/bests?metric=%00").status == 404
