"""MLflow's calls with a run's token: held to the run, its experiment and its models; it adds, and takes nothing away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.api.access.allowed_hosts import HostRules
from onward.api.app import make_server
from onward.operations.tracker_access.location import OpenTracker, open_tracker, tracker_location
from onward.tracker.access.tokens import Rights, Scope
from tests.api import Answer, Client
from tests.databases import tracker_in
from tests.sandbox import Sandbox

M = "/api/2.0/mlflow"
FILES = "/api/2.0/mlflow-artifacts/artifacts"


class Harness:
    def __init__(self, folder: Path, opened: OpenTracker) -> None:
        sandbox = Sandbox(folder / "desk", {})
        at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self._tokens, self._now = opened.tokens, sandbox.clock.now()
        self._gate = make_server(opened.tracker, opened.tokens, sandbox.context, at, hosts=HostRules(), tend=False).gate
        self.files = at.files
        self.user = self.as_(Scope.USER, rights=Rights.WRITE)
        self.experiment = self.made("experiments/create", {"name": "mine"})["experiment_id"]
        self.elsewhere = self.made("experiments/create", {"name": "theirs"})["experiment_id"]
        self.run, self.other = self.new_run(self.experiment), self.new_run(self.elsewhere)
        self.held = self.as_(Scope.RUN, run=self.run)

    def as_(self, scope: Scope, **others: Any) -> Client:
        return Client(self._gate, self._tokens.create(scope, now=self._now, **others)[1].text)

    def made(self, what: str, body: dict[str, Any]) -> Any:
        answer = self.user.post(f"{M}/{what}", body)
        assert answer.status == 200, answer.text
        return answer.json

    def new_run(self, experiment: str) -> str:
        return str(self.made("runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"])


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def refused(answer: Answer) -> None:
    assert (answer.status, answer.json["error_code"]) == (403, "PERMISSION_DENIED"), answer.text


def test_a_runs_token_changes_no_experiment(harness: Harness) -> None:
    for id in (harness.experiment, harness.elsewhere):
        for what, more in (
            ("delete", {}),
            ("restore", {}),
            ("update", {"new_name": "x"}),
            ("set-experiment-tag", {"key": "a", "value": "b"}),
            ("delete-experiment-tag", {"key": "a"}),
        ):
            refused(harness.held.post(f"{M}/experiments/{what}", {"experiment_id": id, **more}))
    refused(harness.held.post(f"{M}/experiments/create", {"name": "new"}))
    refused(harness.held.post(f"{M}/experiments/create", {"name": "theirs"}))
    there = harness.held.post(f"{M}/experiments/create", {"name": "mine"})
    assert (there.status, there.json["error_code"]) in ((400, "RESOURCE_ALREADY_EXISTS"), (409, "RESOURCE_ALREADY_EXISTS"))
    found = harness.user.post(f"{M}/experiments/search", {"view_type": "ALL"}).json["experiments"]
    assert {one["name"] for one in found} >= {"mine", "theirs"} and len(found) == 3


def test_a_runs_token_reads_its_own_experiment_alone(harness: Harness) -> None:
    for query in (f"get?experiment_id={harness.experiment}", "get-by-name?experiment_name=mine"):
        assert harness.held.get(f"{M}/experiments/{query}").json["experiment"]["name"] == "mine"
    for query in (f"get?experiment_id={harness.elsewhere}", "get-by-name?experiment_name=theirs", "get-by-name?experiment_name=none"):
        refused(harness.held.get(f"{M}/experiments/{query}"))
    for answer in (harness.held.post(f"{M}/experiments/search", {}), harness.held.get(f"{M}/experiments/search")):
        assert [one["name"] for one in answer.json["experiments"]] == ["mine"]


def test_a_runs_token_adds_to_its_run_and_takes_nothing_away(harness: Harness) -> None:
    mine = {"run_id": harness.run}
    path = f"{FILES}/{harness.experiment}/{harness.run}/artifacts/a.txt"
    assert harness.held.post(f"{M}/runs/set-tag", {**mine, "key": "a", "value": "b"}).status == 200
    assert harness.held.ask("PUT", path, body=b"text").status == 200
    refused(harness.held.post(f"{M}/runs/delete-tag", {**mine, "key": "a"}))
    refused(harness.held.post(f"{M}/runs/delete", mine))
    refused(harness.held.post(f"{M}/runs/restore", mine))
    refused(harness.held.ask("DELETE", path))
    assert harness.held.ask("DELETE", f"/api/v1/runs/{harness.run}/artifacts/a.txt").status == 403
    assert harness.held.get(path).text == "text"
    assert harness.user.ask("DELETE", path).status == 200


def model_of(client: Client, experiment: str, run: str) -> str:
    made = client.post(f"{M}/logged-models", {"experiment_id": experiment, "name": "net", "source_run_id": run})
    assert made.status == 200, made.text
    return str(made.json["model"]["info"]["model_id"])


def calls_on(harness: Harness, model: str, experiment: str) -> list[tuple[str, str, Any]]:
    """All that a run adds to a model, or asks of it."""
    mine = {"run_id": harness.run}
    metric = {"key": "acc", "value": 1.0, "timestamp": 1_790_000_000_000, "step": 0, "model_id": model}
    return [
        ("GET", f"{M}/logged-models/{model}", None),
        ("PATCH", f"{M}/logged-models/{model}", {"status": "LOGGED_MODEL_READY"}),
        ("PATCH", f"{M}/logged-models/{model}/tags", {"tags": [{"key": "a", "value": "b"}]}),
        ("POST", f"{M}/logged-models/{model}/params", {"params": [{"key": "a", "value": "b"}]}),
        ("PUT", f"{FILES}/{experiment}/models/{model}/artifacts/w.bin", {}),
        ("GET", f"{FILES}/{experiment}/models/{model}/artifacts/w.bin", None),
        ("GET", f"{FILES}?path={experiment}/models/{model}/artifacts", None),
        ("GET", f"{M}/logged-models/{model}/artifacts/directories", None),
        ("POST", f"{M}/runs/log-metric", {**mine, **metric}),
        ("POST", f"{M}/runs/log-batch", {**mine, "metrics": [metric]}),
        ("POST", f"{M}/runs/log-inputs", {**mine, "models": [{"model_id": model}]}),
        ("POST", f"{M}/runs/outputs", {**mine, "models": [{"model_id": model, "step": 1}]}),
    ]


def test_a_runs_token_is_held_to_the_models_of_its_run(harness: Harness) -> None:
    mine = model_of(harness.held, harness.experiment, harness.run)
    theirs, nobodys = model_of(harness.user, harness.elsewhere, harness.other), model_of(harness.user, harness.experiment, "")
    for method, path, body in calls_on(harness, mine, harness.experiment):
        assert harness.held.ask(method, path, json=body).status == 200, (method, path)
    for model, experiment in ((theirs, harness.elsewhere), (nobodys, harness.experiment)):
        before = harness.user.get(f"{M}/logged-models/{model}").json
        for method, path, body in calls_on(harness, model, experiment):
            refused(harness.held.ask(method, path, json=body))
        refused(harness.held.ask("DELETE", f"{M}/logged-models/{model}"))
        assert harness.user.get(f"{M}/logged-models/{model}").json == before
    refused(harness.held.ask("DELETE", f"{M}/logged-models/{mine}"))
    asked = {"experiment_ids": [harness.experiment, harness.elsewhere]}
    assert [one["info"]["model_id"] for one in harness.held.post(f"{M}/logged-models/search", asked).json["models"]] == [mine]
    assert len(harness.user.post(f"{M}/logged-models/search", asked).json["models"]) == 3


def test_a_runs_token_makes_models_of_its_run_and_experiment_alone(harness: Harness) -> None:
    refused(harness.held.post(f"{M}/logged-models", {"experiment_id": harness.elsewhere, "source_run_id": harness.run}))
    refused(harness.held.post(f"{M}/logged-models", {"experiment_id": harness.experiment, "source_run_id": harness.other}))
    made = harness.held.post(f"{M}/logged-models", {"experiment_id": harness.experiment, "name": "net"}).json["model"]
    assert made["info"]["source_run_id"] == harness.run


def test_uploaded_files_are_for_their_owner_alone(harness: Harness) -> None:
    model = model_of(harness.held, harness.experiment, harness.run)
    for path in (f"{harness.experiment}/{harness.run}/artifacts/a/b.txt", f"{harness.experiment}/models/{model}/artifacts/a/b.txt"):
        assert harness.held.ask("PUT", f"{FILES}/{path}", body=b"text").status == 200
    stored = [harness.files / harness.run / "a/b.txt", harness.files / "models" / model / "a/b.txt"]
    assert [path.stat().st_mode & 0o777 for path in stored] == [0o600, 0o600]
    assert [path.parent.stat().st_mode & 0o777 for path in stored] == [0o700, 0o700]
    assert harness.files.stat().st_mode & 0o777 == 0o700


def test_the_state_folder_is_closed_and_another_folder_is_left_as_it_is(tmp_path: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    for folder in (state, other):
        folder.mkdir()
        folder.chmod(0o755)
    with open_tracker(tracker_location({"ONWARD_STATE_DIR": str(state)})), open_tracker(tracker_location({}, str(other / "x.db"))):
        pass
    assert (state.stat().st_mode & 0o777, other.stat().st_mode & 0o777) == (0o700, 0o755)
    assert (other / "x.files").stat().st_mode & 0o777 == 0o700
