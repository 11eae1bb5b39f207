"""MLflow's answers where order and repetition count: as MLflow's own server gives them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_api_mlflow_held import M, Scene, scene

__all__ = ["scene"]
AT = 1_790_000_000_000


def points(scene: Scene, query: str = "") -> list[tuple[int, int, Any]]:
    told = scene.user.get(f"{M}/metrics/get-history?run_id={scene.run}&metric_key=loss{query}").json
    return [(point["timestamp"] - AT, point["step"], point["value"]) for point in told["metrics"]]


def test_a_history_is_by_time_then_step_then_value(scene: Scene) -> None:
    told = [(3, 0, 1.0), (1, 9, 2.0), (1, 2, 5.0), (2, 2, 4.0), (2, 2, 3.0), (0, 7, 1.0)]
    metrics = [{"key": "loss", "timestamp": AT + time, "step": step, "value": value} for time, step, value in told]
    scene.made("runs/log-batch", {"run_id": scene.run, "metrics": metrics})
    assert points(scene) == sorted(told)
    first = scene.user.get(f"{M}/metrics/get-history?run_id={scene.run}&metric_key=loss&max_results=4").json
    assert len(first["metrics"]) == 4
    assert points(scene, f"&max_results=4&page_token={first['next_page_token']}") == sorted(told)[4:]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("view_type=DELETED_ONLY", ["theirs"]),
        ("view_type=ALL&order_by=name%20DESC", ["theirs", "mine", "Default"]),
        ("order_by=name%20ASC", ["Default", "mine"]),
    ],
)
def test_experiments_are_searched_by_address_as_by_body(scene: Scene, query: str, names: list[str]) -> None:
    scene.made("experiments/delete", {"experiment_id": scene.elsewhere})
    found = scene.user.get(f"{M}/experiments/search?{query}").json["experiments"]
    assert [one["name"] for one in found] == names


def test_a_view_that_there_is_not_is_refused_by_address_too(scene: Scene) -> None:
    assert scene.user.get(f"{M}/experiments/search?view_type=SOME").status == 400


def test_a_dataset_that_is_told_of_twice_stays_as_it_was_first(scene: Scene) -> None:
    for context, source in (("train", "a.csv"), ("eval", "b.csv")):
        dataset = {"name": "digits", "digest": "d1", "source_type": "local", "source": source}
        tags = [{"key": "mlflow.data.context", "value": context}]
        scene.made("runs/log-inputs", {"run_id": scene.run, "datasets": [{"dataset": dataset, "tags": tags}]})
    [told] = scene.user.get(f"{M}/runs/get?run_id={scene.run}").json["run"]["inputs"]["dataset_inputs"]
    assert told["tags"] == [{"key": "mlflow.data.context", "value": "train"}] and told["dataset"]["source"] == "a.csv"
