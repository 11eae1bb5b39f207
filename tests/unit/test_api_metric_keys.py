"""Which metrics runs have: searched and paged, light with thousands of keys."""

from __future__ import annotations

from typing import Any

from onward.tracker.access.tokens import Rights, Scope
from tests.unit.test_api_routes import Harness, good, harness  # noqa: F401

ADDRESS = "/api/v1/metrics/search"


def test_keys_of_several_runs_come_together_with_how_many_have_them(harness: Harness) -> None:  # noqa: F811
    one, two = harness.run(), harness.run()
    for run, keys in ((one, ["loss", "layer/10", "layer/2"]), (two, ["loss"])):
        for key in keys:
            harness.log(run, key, [3.0, 1.0, 2.0])
    answer = good(harness.as_(Scope.USER, rights=Rights.READ).post(ADDRESS, {"runs": [one, two]}))
    assert [(row["key"], row["runs"], row["points"]) for row in answer["keys"]] == [("layer/2", 1, 3), ("layer/10", 1, 3), ("loss", 2, 6)]
    assert (answer["total"], "values" in answer["keys"][0]) == (3, False)


def test_keys_are_searched_by_words_and_paged_and_tell_their_values(harness: Harness) -> None:  # noqa: F811
    run = harness.run()
    for key in ("train/loss", "val/loss", "val/Accuracy", "100%_odd"):
        harness.log(run, key, [3.0, 1.0, 2.0])

    def ask(**others: Any) -> Any:
        return good(harness.client.post(ADDRESS, {"runs": [run], **others}))

    assert [row["key"] for row in ask(text="ACC val")["keys"]] == ["val/Accuracy"]
    assert [row["key"] for row in ask(text="%_")["keys"]] == ["100%_odd"]
    page = ask(text="loss", limit=1, offset=1, values=True)
    assert (page["total"], [row["key"] for row in page["keys"]]) == (2, ["val/loss"])
    assert {name: page["keys"][0]["values"][run][name] for name in ("value", "low", "high", "low_step")} == {
        "value": 2.0,
        "low": 1.0,
        "high": 3.0,
        "low_step": 1,
    }


def test_an_unknown_run_is_404(harness: Harness) -> None:  # noqa: F811
    answer = harness.client.post(ADDRESS, {"runs": [harness.run(), "nobody"]})
    assert (answer.status, "'nobody'" in answer.text) == (404, True)
