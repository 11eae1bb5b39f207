"""Which metrics runs have: searched and paged, light with thousands of keys."""

from __future__ import annotations

from typing import Any

from onward.tracker.access.tokens import Rights, Scope
from tests.unit.test_api_routes import Scene, good, scene  # noqa: F401

ADDRESS = "/api/v1/metrics/search"


def test_keys_of_several_runs_come_together_with_how_many_have_them(scene: Scene) -> None:  # noqa: F811
    one, two = scene.run(), scene.run()
    for run, keys in ((one, ["loss", "layer/10", "layer/2"]), (two, ["loss"])):
        for key in keys:
            scene.log(run, key, [3.0, 1.0, 2.0])
    told = good(scene.as_(Scope.USER, rights=Rights.READ).post(ADDRESS, {"runs": [one, two]}))
    assert [(row["key"], row["runs"], row["points"]) for row in told["keys"]] == [("layer/2", 1, 3), ("layer/10", 1, 3), ("loss", 2, 6)]
    assert (told["total"], "values" in told["keys"][0]) == (3, False)


def test_keys_are_searched_by_words_and_paged_and_tell_their_values(scene: Scene) -> None:  # noqa: F811
    run = scene.run()
    for key in ("train/loss", "val/loss", "val/Accuracy", "100%_odd"):
        scene.log(run, key, [3.0, 1.0, 2.0])

    def ask(**others: Any) -> Any:
        return good(scene.client.post(ADDRESS, {"runs": [run], **others}))

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


def test_an_unknown_run_is_404(scene: Scene) -> None:  # noqa: F811
    answer = scene.client.post(ADDRESS, {"runs": [scene.run(), "nobody"]})
    assert (answer.status, "'nobody'" in answer.text) == (404, True)
