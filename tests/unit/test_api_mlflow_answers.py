"""MLflow's answers where order and repetition count: as MLflow's own server gives them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.test_api_mlflow_held import Harness, M, harness

__all__ = ["harness"]
AT = 1_790_000_000_000


def points(harness: Harness, query: str = "") -> list[tuple[int, int, Any]]:
    body = harness.user.get(f"{M}/metrics/get-history?run_id={harness.run}&metric_key=loss{query}").json
    return [(point["timestamp"] - AT, point["step"], point["value"]) for point in body["metrics"]]


def test_a_history_is_by_time_then_step_then_value(harness: Harness) -> None:
    entries = [(3, 0, 1.0), (1, 9, 2.0), (1, 2, 5.0), (2, 2, 4.0), (2, 2, 3.0), (0, 7, 1.0)]
    metrics = [{"key": "loss", "timestamp": AT + time, "step": step, "value": value} for time, step, value in entries]
    harness.made("runs/log-batch", {"run_id": harness.run, "metrics": metrics})
    assert points(harness) == sorted(entries)
    first = harness.user.get(f"{M}/metrics/get-history?run_id={harness.run}&metric_key=loss&max_results=4").json
    assert len(first["metrics"]) == 4
    assert points(harness, f"&max_results=4&page_token={first['next_page_token']}") == sorted(entries)[4:]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("view_type=DELETED_ONLY", ["theirs"]),
        ("view_type=ALL&order_by=name%20DESC", ["theirs", "mine", "Default"]),
        ("order_by=name%20ASC", ["Default", "mine"]),
    ],
)
def test_experiments_are_searched_by_address_as_by_body(harness: Harness, query: str, names: list[str]) -> None:
    harness.made("experiments/delete", {"experiment_id": harness.elsewhere})
    found = harness.user.get(f"{M}/experiments/search?{query}").json["experiments"]
    assert [one["name"] for one in found] == names


def test_a_view_that_there_is_not_is_refused_by_address_too(harness: Harness) -> None:
    assert harness.user.get(f"{M}/experiments/search?view_type=SOME").status == 400


@pytest.mark.parametrize("view", [True, 4, "4", [], {}, "ALL "])
def test_a_view_that_there_is_not_is_refused_in_a_body(harness: Harness, view: Any) -> None:
    answer = harness.user.post(f"{M}/runs/search", {"experiment_ids": ["0"], "run_view_type": view})
    assert answer.status == (200 if view in ([], {}) else 400), answer.text


@pytest.mark.parametrize("token", ["x", "e30=", base64.b64encode(b"[" * 100_000).decode()])
def test_a_page_token_that_there_is_not_is_refused(harness: Harness, token: str) -> None:
    answer = harness.user.post(f"{M}/runs/search", {"experiment_ids": ["0"], "page_token": token})
    assert (answer.status, answer.json["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_a_dataset_that_is_told_of_twice_stays_as_it_was_first(harness: Harness) -> None:
    for context, source in (("train", "a.csv"), ("eval", "b.csv")):
        dataset = {"name": "digits", "digest": "d1", "source_type": "local", "source": source}
        tags = [{"key": "mlflow.data.context", "value": context}]
        harness.made("runs/log-inputs", {"run_id": harness.run, "datasets": [{"dataset": dataset, "tags": tags}]})
    [body] = harness.user.get(f"{M}/runs/get?run_id={harness.run}").json["run"]["inputs"]["dataset_inputs"]
    assert body["tags"] == [{"key": "mlflow.data.context", "value": "train"}] and body["dataset"]["source"] == "a.csv"


def log(harness: Harness, steps: range, value: float, *, at: int) -> None:
    metrics = [{"key": "loss", "timestamp": AT + at + step, "step": step, "value": value} for step in steps]
    harness.made("runs/log-batch", {"run_id": harness.run, "metrics": metrics})


def end(harness: Harness, status: str, **more: Any) -> dict[str, Any]:
    info: dict[str, Any] = harness.made("runs/update", {"run_id": harness.run, "status": status, **more})["run_info"]
    return info


def test_a_run_that_runs_again_after_its_end_is_stitched_and_a_client_still_reads_all_points(harness: Harness) -> None:
    log(harness, range(10), 1.0, at=0)
    end(harness, "FINISHED", end_time=AT + 50)
    end(harness, "RUNNING", end_time=AT + 50)
    log(harness, range(5, 8), 2.0, at=100)
    [drawn] = harness.user.get(f"/api/v1/series?run={harness.run}&metric=loss").json["series"]
    assert (drawn["steps"], drawn["values"], drawn["superseded"]) == (list(range(8)), [1.0] * 5 + [2.0] * 3, 5)
    shown = harness.user.get(f"/api/v1/runs/{harness.run}").json
    assert (shown["leg"], shown["metrics"]["loss"]["value"]) == (2, 2.0)
    assert [(leg["state"], leg["ended"]) for leg in shown["legs"]] == [("finished", (AT + 50) / 1000), ("running", None)]
    assert len(points(harness)) == 13 and points(harness)[-1] == (107, 7, 2.0)
    [last] = harness.user.get(f"{M}/runs/get?run_id={harness.run}").json["run"]["data"]["metrics"]
    assert (last["step"], last["value"], last["timestamp"]) == (9, 1.0, AT + 9)  # the highest step, as MLflow's server says
    for text, found in (("metrics.loss = 1", 1), ("metrics.loss = 2", 0)):
        answer = harness.made("runs/search", {"experiment_ids": [harness.experiment], "filter": text, "order_by": ["metrics.loss DESC"]})
        assert [run["data"]["metrics"][0]["value"] for run in answer.get("runs", [])] == [1.0] * found


def test_a_run_that_only_says_again_that_it_runs_has_no_new_leg(harness: Harness) -> None:
    log(harness, range(3), 1.0, at=0)
    end(harness, "RUNNING")
    for _ in range(2):  # nothing is logged the second time
        end(harness, "FINISHED")
        end(harness, "RUNNING")
    log(harness, range(3, 5), 1.0, at=0)
    shown = harness.user.get(f"/api/v1/runs/{harness.run}").json
    assert [leg["state"] for leg in shown["legs"]] == ["finished", "running"]
    assert end(harness, "FINISHED")["status"] == "FINISHED"
    assert harness.user.get(f"/api/v1/runs/{harness.run}").json["legs"][1]["state"] == "finished"


def test_an_end_stands_again_where_no_other_follows(harness: Harness) -> None:
    assert end(harness, "FAILED", end_time=AT)["end_time"] == AT
    assert "end_time" not in end(harness, "RUNNING", end_time=AT)
    assert end(harness, "KILLED")["end_time"] == AT
    assert end(harness, "FINISHED", end_time=AT + 5)["end_time"] == AT + 5


@pytest.mark.parametrize(
    ("call", "body", "code"),
    [
        ("experiments/delete", {"experiment_id": "abc"}, "INVALID_PARAMETER_VALUE"),
        ("experiments/restore", {"experiment_id": "MINE"}, "RESOURCE_DOES_NOT_EXIST"),
        ("experiments/update", {"experiment_id": "MINE", "new_name": ""}, "INVALID_PARAMETER_VALUE"),
        ("experiments/search", {"order_by": ["lifecycle_stage"]}, "INVALID_PARAMETER_VALUE"),
        ("experiments/search", {"filter": "attributes.name = 'mine'"}, "INVALID_PARAMETER_VALUE"),
        ("runs/create", {"experiment_id": "abc"}, "INVALID_PARAMETER_VALUE"),
        ("runs/create", {"experiment_id": "MINE", "tags": [{"key": "k" * 251, "value": "x"}]}, "INVALID_PARAMETER_VALUE"),
        ("logged-models", {"experiment_id": "MINE", "tags": [{"key": "k\x00", "value": "x"}]}, "INVALID_PARAMETER_VALUE"),
        ("logged-models", {"experiment_id": "MINE", "params": [{"key": "k" * 251, "value": "x"}]}, "INVALID_PARAMETER_VALUE"),
        ("experiments/create", {"name": "new", "artifact_location": "s3://" + "x" * 250}, "INVALID_PARAMETER_VALUE"),
        ("runs/search", {"experiment_ids": ["abc"]}, "INVALID_PARAMETER_VALUE"),
        ("runs/search", {"experiment_ids": ["MINE"], "filter": "  "}, "INVALID_PARAMETER_VALUE"),
        ("runs/search", {"experiment_ids": ["MINE"], "filter": "Tags.a = 'x'"}, "INVALID_PARAMETER_VALUE"),
        ("runs/search", {"experiment_ids": ["MINE"], "filter": "metrics.a > +1"}, "INVALID_PARAMETER_VALUE"),
        ("runs/search", {"experiment_ids": ["MINE"], "order_by": ["attributes.nothing"]}, "INVALID_PARAMETER_VALUE"),
        ("runs/search", {"experiment_ids": ["MINE"], "order_by": ["`run name`"]}, "INVALID_PARAMETER_VALUE"),
        ("runs/log-metric", {"run_id": "RUN", "key": "a", "value": 1, "timestamp": -5}, "INVALID_PARAMETER_VALUE"),
        ("runs/log-batch", {"run_id": "RUN", "params": [{"key": "a", "value": "1"}] * 2}, "INVALID_PARAMETER_VALUE"),
        ("runs/log-inputs", {"run_id": "RUN", "datasets": [{"dataset": {"name": "d", "digest": "x" * 37}}]}, "INVALID_PARAMETER_VALUE"),
    ],
)
def test_what_mlflow_refuses_is_refused_with_its_code(harness: Harness, call: str, body: dict[str, Any], code: str) -> None:
    fields = {"MINE": harness.experiment, "RUN": harness.run}
    named = {
        key: [fields.get(v, v) for v in value] if key == "experiment_ids" else fields.get(str(value), value) for key, value in body.items()
    }
    answer = harness.user.post(f"{M}/{call}", named)
    assert (answer.status in (400, 404), answer.json["error_code"]) == (True, code), answer.text


@pytest.mark.parametrize("key", ["tags.'k k'", 'tags."k k"', "tags.`k k`", "`tags`.`k k`"])
def test_a_key_may_stand_in_any_quotes(harness: Harness, key: str) -> None:
    harness.made("runs/set-tag", {"run_id": harness.run, "key": "k k", "value": "v"})
    found = harness.made("runs/search", {"experiment_ids": [harness.experiment], "filter": f"{key} = 'v'", "order_by": [key]})
    assert len(found["runs"]) == 1


def test_a_deleted_experiment_is_deleted_once_and_takes_no_tags(harness: Harness) -> None:
    harness.made("experiments/delete", {"experiment_id": harness.experiment})
    again = harness.user.post(f"{M}/experiments/delete", {"experiment_id": harness.experiment})
    tag = harness.user.post(f"{M}/experiments/set-experiment-tag", {"experiment_id": harness.experiment, "key": "a", "value": "b"})
    assert (again.json["error_code"], tag.json["error_code"]) == ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")


def test_the_history_of_a_run_that_is_not_there_is_empty_but_a_runs_token_learns_nothing(harness: Harness) -> None:
    asked = f"{M}/metrics/get-history?run_id={'f' * 32}&metric_key=loss"
    assert (harness.user.get(asked).json, harness.held.get(asked).status) == ({}, 404)


def test_artifacts_elsewhere_are_the_clients_to_send(harness: Harness) -> None:
    made = harness.made("experiments/create", {"name": "s3", "artifact_location": "s3://bucket/some/"})["experiment_id"]
    run = harness.made("runs/create", {"experiment_id": made})["run"]["info"]
    assert run["artifact_uri"] == f"s3://bucket/some/{run['run_id']}/artifacts"
    found = harness.made("runs/search", {"experiment_ids": [made], "filter": "attributes.artifact_uri LIKE 's3://bucket/some/%'"})
    assert len(found["runs"]) == 1


def test_a_new_runs_tags_are_taken_as_they_are(harness: Harness) -> None:
    made = harness.made("runs/create", {"experiment_id": harness.experiment, "tags": [{"key": "it's", "value": "x" * 9000}]})["run"]
    assert {tag["key"]: len(tag["value"]) for tag in made["data"]["tags"]}["it's"] == 9000
    harness.made("runs/delete-tag", {"run_id": made["info"]["run_id"], "key": "mlflow.runName"})
    data = harness.user.get(f"{M}/runs/get?run_id={made['info']['run_id']}").json["run"]["data"]
    assert [tag["key"] for tag in data["tags"]] == ["it's"]


def test_logged_models_are_named_searched_and_deleted_as_mlflow_does(harness: Harness) -> None:
    def new(name: str) -> str:
        return str(harness.made("logged-models", {"experiment_id": harness.experiment, "name": name})["model"]["info"]["model_id"])

    def found(**asked: Any) -> list[str]:
        answer = harness.made("logged-models/search", {"experiment_ids": [harness.experiment], **asked})["models"]
        return [one["info"]["name"] for one in answer]

    for name in ("a/b", "a:b", "a.b", "a%b", 'a"b', "a'b"):
        assert harness.user.post(f"{M}/logged-models", {"experiment_id": harness.experiment, "name": name}).status == 400
    first, second = new("first"), new("second")
    new("third")
    for model, value, dataset in ((first, 0.9, "train"), (second, 0.5, "test")):
        point = {
            "key": "acc",
            "value": value,
            "timestamp": AT,
            "step": 0,
            "model_id": model,
            "dataset_name": dataset,
            "dataset_digest": "x",
        }
        harness.made("runs/log-batch", {"run_id": harness.run, "metrics": [point]})
    assert found(order_by=[{"field_name": "metrics.acc"}]) == ["second", "first", "third"]
    assert found(order_by=[{"field_name": "metrics.acc", "dataset_name": "train", "ascending": False}]) == ["first", "third", "second"]
    assert found(filter="metrics.acc > 0", datasets=[{"dataset_name": "test", "dataset_digest": "x"}]) == ["second"]
    assert found(filter="status IN ('PENDING') AND tags.t IN ('1')") == []
    assert harness.user.post(f"{M}/logged-models/search", {"experiment_ids": []}).status == 400
    assert [harness.user.ask("DELETE", f"{M}/logged-models/{first}").status for _ in range(2)] == [200, 200]
    assert found(max_results=0) == ["third", "second"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("registered-models/create", "does not support MLflow's model registry"),
        ("model-versions/create", "does not support MLflow's model registry"),
        ("traces/search", "does not support MLflow's traces"),
        ("somewhere/else", "nothing at this address"),
    ],
)
def test_what_is_not_here_is_told_so_that_a_client_knows_it_from_a_missing_run(harness: Harness, call: str, says: str) -> None:
    answer = harness.user.post(f"{M}/{call}", {"name": "x"})
    assert (answer.status, answer.json["error_code"]) == (404, "ENDPOINT_NOT_FOUND")
    assert says in answer.json["message"]
