"""Groups of runs, drawn: the mean over all of them, by any x."""

from __future__ import annotations

from onward.tracker.access.tokens import Rights, Scope
from tests.unit.test_api_routes import Harness, good, harness  # noqa: F401

ADDRESS = "/api/v1/series/aggregates/search"


def test_each_group_is_one_curve_over_all_its_runs(harness: Harness) -> None:  # noqa: F811
    runs = [harness.run() for _ in range(4)]
    for index, run in enumerate(runs[:3]):
        harness.log(run, "loss", [float(index + step) for step in range(5)])
    asked = {"groups": [{"name": "a", "runs": runs[:2]}, {"name": "b", "runs": runs[2:]}], "metric": "loss"}
    first, second = good(harness.client.post(ADDRESS, asked))["groups"]
    assert (first["name"], first["runs"], first["with_data"], first["xs"]) == ("a", 2, 2, [0, 1, 2, 3, 4])
    assert (first["means"], first["lows"], first["highs"]) == ([0.5, 1.5, 2.5, 3.5, 4.5], [0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert (second["runs"], second["with_data"], second["counts"]) == (2, 1, [1] * 5)


def test_a_range_is_read_at_the_full_resolution_by_time_and_by_another_metric(harness: Harness) -> None:  # noqa: F811
    run = harness.run()
    harness.log(run, "loss", [float(step) for step in range(2000)])
    harness.log(run, "epoch", [step / 100 for step in range(2000)])
    group = [{"name": "all", "runs": [run]}]
    for x, first, last in (("step", 500, 509), ("wall", 1.7e9 + 500, 1.7e9 + 509), ("metric:epoch", 5.0, 5.09)):
        [answer] = good(harness.client.post(ADDRESS, {"groups": group, "metric": "loss", "x": x, "first": first, "last": last}))["groups"]
        assert answer["means"] == [float(step) for step in range(500, 510)], x


def test_a_reader_may_ask_and_what_is_wrong_is_told(harness: Harness) -> None:  # noqa: F811
    run = harness.run()
    asked = {"groups": [{"name": "", "runs": [run]}], "metric": "loss"}
    assert good(harness.as_(Scope.USER, rights=Rights.READ).post(ADDRESS, asked))["groups"][0]["xs"] == []
    assert harness.client.post(ADDRESS, {**asked, "x": "weekday"}).status == 400
    assert harness.client.post(ADDRESS, {**asked, "groups": [{"name": "", "runs": ["nobody"]}]}).status == 404
    many = [{"name": str(i), "runs": [f"r{i}-{n}" for n in range(3000)]} for i in range(2)]
    answer = harness.client.post(ADDRESS, {**asked, "groups": many})
    assert (answer.status, "6000 runs are too many" in answer.text) == (400, True)


def test_runs_of_a_chart_may_each_have_a_range_and_its_legs_are_told(harness: Harness) -> None:  # noqa: F811
    runs = [harness.run(), harness.run()]
    for run in runs:
        harness.log(run, "loss", [float(step) for step in range(10)])
    asked = {"runs": runs, "metrics": ["loss"], "spans": {runs[1]: [8, None]}}
    first, second = good(harness.client.post("/api/v1/series/search", asked))["series"]
    assert (len(first["steps"]), second["steps"]) == (10, [8, 9])
    assert (first["legs"], first["total"], second["total"]) == ([[1, 0]], 10, 10)
