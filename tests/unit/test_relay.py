"""The relay: a tracker on the node's loopback that always accepts."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from onward.model.identity import hex_id
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.progress import leg_progress
from onward.supervisor.preparation.environment import relay_variables
from onward.supervisor.relay import server
from onward.supervisor.relay.artifacts import carry_artifacts, has_pending_artifacts
from onward.supervisor.relay.mlflow import number_for_experiment
from onward.supervisor.relay.routes import Relay, start_relay
from tests.histories import make_spec

RUN = hex_id("k3x9q2m7")
EXPERIMENT = str(number_for_experiment("digits"))
MLFLOW = "/api/2.0/mlflow"
FILES = f"/api/2.0/mlflow-artifacts/artifacts/{EXPERIMENT}/{RUN}/artifacts"


def wait_until(true: Callable[[], bool], within: float = 30.0) -> None:
    until = time.monotonic() + within
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


@dataclass(kw_only=True)
class Node:
    """A leg's relay, and a client of it."""

    dir: RunDir
    local: LegLocal
    relay: Relay
    leg: int = 1

    def ask(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, secret: bool = True
    ) -> tuple[int, Any]:
        parts = urlsplit(self.relay.url)
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, (parts.path if secret else "") + path, body=data, headers=headers or {})
            answer = connection.getresponse()
            text = answer.read()
            kind = answer.getheader("content-type")
            return answer.status, json.loads(text) if kind == "application/json" and text else text
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.ask(method, path, body)
        assert status in (200, 201), answer
        return answer

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for path in sorted(self.local.spool.glob("*.jsonl")) for line in path.read_text().splitlines()]

    def points(self) -> list[tuple[int, dict[str, float]]]:
        return [(record["s"], record["m"]) for record in self.records() if "m" in record]


def node_of(tmp_path: Path, leg: int = 1) -> Node:
    dir, local = RunDir(tmp_path / "run"), LegLocal(tmp_path / f"node-{leg}")
    dir.make()
    local.make()
    relay = start_relay(make_spec(), dir, local, leg=leg)
    assert relay
    return Node(dir=dir, local=local, relay=relay, leg=leg)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = node_of(tmp_path)
    yield made
    made.relay.close(within=10)


# ── who may ask ───────────────────────────────────────────────────────────────


def test_the_secret_may_stand_in_the_address_or_in_a_header(node: Node) -> None:
    secret = node.relay.url.rpartition("/")[2]
    basic = base64.b64encode(f"any:{secret}".encode()).decode()
    assert node.ask("GET", "/healthz")[0] == 200
    for name, value in (("Authorization", f"Bearer {secret}"), ("X-API-Key", secret), ("Authorization", f"Basic {basic}")):
        assert node.ask("GET", "/healthz", headers={name: value}, secret=False)[0] == 200


@pytest.mark.parametrize("path", ["/healthz", "/t/wrong/healthz", "/t/healthz", "/api/2.0/mlflow/runs/get", "/", "/t//healthz"])
def test_without_it_nobody_comes_in(node: Node, path: str) -> None:
    assert node.ask("GET", path, secret=False)[0] == 401
    assert node.ask("POST", path, b"x" * 100_000, secret=False, headers={"Authorization": "Basic %%%"})[0] == 401
    assert [record["kind"] for record in node.records()] == ["relay"]


def test_it_listens_on_the_loopback_alone(node: Node) -> None:
    port = urlsplit(node.relay.url).port
    assert port is not None
    with pytest.raises(OSError), socket.create_connection((socket.gethostbyname(socket.gethostname()), port), timeout=2) as other:
        if other.getpeername()[0].startswith("127."):
            raise OSError("this host's name is the loopback's")


def test_a_training_is_told_where_it_is(node: Node) -> None:
    variables = relay_variables(node.local)
    assert variables["MLFLOW_TRACKING_URI"] == variables["TRACKER_API"] == node.relay.url
    assert (variables["MLFLOW_RUN_ID"], variables["MLFLOW_EXPERIMENT_ID"], variables["MLFLOW_EXPERIMENT_NAME"]) == (
        RUN,
        EXPERIMENT,
        "digits",
    )
    token = Path(variables["ONWARD_TOKEN_FILE"])
    assert token.read_text() == variables["TRACKER_API_KEY"]
    for path in (token, node.local.relay):
        assert path.stat().st_mode & 0o777 == 0o600
    assert node.local.path.stat().st_mode & 0o777 == 0o700


def test_what_the_user_set_stays_his_with_all_that_belongs_to_it(node: Node) -> None:
    variables = node.relay.variables({"MLFLOW_TRACKING_URI": "http://mine", "TRACKER_API_KEY": "mine"})
    assert not any(name.startswith("MLFLOW_") for name in variables)  # our run's id would mean nothing to his server
    assert variables["TRACKER_API"] == node.relay.url and "TRACKER_API_KEY" not in variables


def test_where_there_is_no_relay_nothing_is_told(tmp_path: Path) -> None:
    assert relay_variables(LegLocal(tmp_path)) == {}


# ── older scripts ─────────────────────────────────────────────────────────────


def test_an_older_script_gets_the_run_of_its_job_whatever_it_asks_for(node: Node) -> None:
    asked = {"slurm_job_id": "17", "seed": 3, "config": {"lr": 0.1, "layers": [1, 2]}, "gpu_type": "a100"}
    for experiment in ("digits", "7", "something else", "team/digits"):
        assert node.ok("POST", f"/experiments/{quote(experiment)}/runs", asked) == {"run_id": "k3x9q2m7", "leg": 1}
    assert node.ok("POST", "/runs/k3x9q2m7/metrics", {"name": "loss", "value": 0.5, "step": 1}) == {"stored": 1}
    assert node.ok("POST", "/runs/x/metrics/batch", {"step": 2, "metrics": {"loss": 0.4, "acc": "NaN"}, "timestamp": 1.7e9}) == {
        "stored": 2
    }
    assert node.ok("POST", "/runs/x/artifacts", {"path": "/data/m.pt", "type": "model", "size_bytes": 12})["path"] == "/data/m.pt"
    assert node.ok("PATCH", "/runs/x", {"status": "completed"}) == {"run_id": "k3x9q2m7", "status": "completed"}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert node.ask("POST", "/webhooks/slurm", b"job_id=17&status=completed", headers=form) == (200, {"received": True})
    params = [record["params"] for record in node.records() if record.get("kind") == "params"]
    assert params == [{"lr": 0.1, "layers": [1, 2], "seed": 3}] * 4
    (first, loss), (second, both) = node.points()
    assert (first, loss, second, both["loss"]) == (1, {"loss": 0.5}, 2, 0.4)
    assert both["acc"] != both["acc"]


def test_what_is_no_point_is_passed_over_and_ends_no_training(node: Node) -> None:
    for body in (
        {"name": "loss"},
        {"name": "loss", "value": "tall"},
        {"value": 1},
        {"name": "x", "value": 1, "step": "y"},
        {"points": [7]},
    ):
        assert node.ok("POST", "/runs/x/metrics", body) == {"stored": 0}
    assert node.points() == []
    assert node.ask("POST", "/runs/x/metrics", b"no JSON")[0] == 400


def test_steps_that_came_through_it_are_progress(node: Node) -> None:
    for step in range(7):
        node.ok("POST", "/runs/x/metrics", {"name": "loss", "value": 1.0, "step": step})
    assert leg_progress(node.local.spool, 1).last_step == 6


# ── MLflow ────────────────────────────────────────────────────────────────────


def test_every_run_that_is_made_or_asked_for_is_this_one(node: Node) -> None:
    made = node.ok("POST", f"{MLFLOW}/runs/create", {"experiment_id": "5", "tags": [{"key": "mlflow.user", "value": "ada"}]})["run"]
    found = node.ok("GET", f"{MLFLOW}/runs/get?run_id=whatever")["run"]
    assert made["info"]["run_id"] == found["info"]["run_id"] == RUN
    assert made["info"]["experiment_id"] == EXPERIMENT == node.ok("POST", f"{MLFLOW}/experiments/create", {"name": "x"})["experiment_id"]
    assert node.ok("GET", f"{MLFLOW}/experiments/get-by-name?experiment_name=x")["experiment"]["experiment_id"] == EXPERIMENT
    assert {"key": "mlflow.user", "value": "ada"} in found["data"]["tags"]
    assert [run["info"]["run_id"] for run in node.ok("POST", f"{MLFLOW}/runs/search", {"experiment_ids": ["1"]})["runs"]] == [RUN]


def test_a_nested_run_is_not_its_own_parent_and_renames_nothing(node: Node) -> None:
    tags = {"mlflow.parentRunId": RUN, "mlflow.runName": "fold-1", "fold": "1"}
    asked = {"run_name": "fold-1", "tags": [{"key": key, "value": value} for key, value in tags.items()]}
    child = node.ok("POST", f"{MLFLOW}/runs/create", asked)["run"]
    node.ok("POST", f"{MLFLOW}/runs/set-tag", {"run_id": RUN, "key": "mlflow.parentRunId", "value": RUN})
    kept = {tag["key"]: tag["value"] for tag in node.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")["run"]["data"]["tags"]}
    assert (child["info"]["run_id"], child["info"]["run_name"]) == (RUN, "digits")
    assert kept == {"mlflow.runName": "digits", "fold": "1"}


def test_a_parent_that_is_another_run_is_kept(node: Node) -> None:
    parent = {"key": "mlflow.parentRunId", "value": "f" * 32}
    node.ok("POST", f"{MLFLOW}/runs/create", {"tags": [parent, {"key": "mlflow.runName", "value": "mine"}]})
    found = node.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")["run"]
    assert parent in found["data"]["tags"] and found["info"]["run_name"] == "mine"


def test_a_batch_is_kept_and_read_back(node: Node) -> None:
    metrics = [{"key": "loss", "value": 1 / (step + 1), "timestamp": 1_700_000_000_000 + step, "step": step} for step in range(5)]
    odd = [{"key": "up", "value": "Infinity", "timestamp": 1_700_000_000_009, "step": 9}, {"key": "bad", "value": "x"}, {"value": 1}]
    body = {"run_id": RUN, "metrics": metrics + odd, "params": [{"key": "lr", "value": "0.1"}], "tags": [{"key": "team", "value": "a"}]}
    for _ in range(2):  # a client that got no answer sends it again
        assert node.ok("POST", f"{MLFLOW}/runs/log-batch", body) == {}
    assert [step for step, _ in node.points()] == [0, 1, 2, 3, 4, 9]
    data = node.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")["run"]["data"]
    assert {m["key"]: m["value"] for m in data["metrics"]} == {"loss": 0.2, "up": "Infinity"}
    assert data["params"] == [{"key": "lr", "value": "0.1"}]
    node.ok("POST", f"{MLFLOW}/runs/delete-tag", {"run_id": RUN, "key": "team"})
    assert {"key": "team", "value": "a"} not in node.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")["run"]["data"]["tags"]


def test_a_history_comes_in_pages(node: Node) -> None:
    for step in range(5):
        node.ok("POST", f"{MLFLOW}/runs/log-metric", {"key": "loss", "value": step, "timestamp": 1000 + step, "step": step})
    first = node.ok("GET", f"{MLFLOW}/metrics/get-history?run_id={RUN}&metric_key=loss&max_results=3")
    rest = node.ok("GET", f"{MLFLOW}/metrics/get-history?run_id={RUN}&metric_key=loss&max_results=3&page_token={first['next_page_token']}")
    assert [m["step"] for m in first["metrics"] + rest["metrics"]] == [0, 1, 2, 3, 4]
    assert "next_page_token" not in rest
    assert node.ok("GET", f"{MLFLOW}/metrics/get-history?run_id={RUN}&metric_key=none") == {}


def test_a_status_is_answered_and_left_to_the_journal(node: Node) -> None:
    info = node.ok("POST", f"{MLFLOW}/runs/update", {"run_id": RUN, "status": "FINISHED", "end_time": 5})["run_info"]
    assert (info["status"], info["end_time"]) == ("FINISHED", 5)
    again = node.ok("POST", f"{MLFLOW}/runs/update", {"run_id": RUN, "status": "RUNNING", "end_time": 5})["run_info"]
    assert again["status"] == "RUNNING" and "end_time" not in again
    assert [record["kind"] for record in node.records()] == ["relay"]


def test_models_inputs_and_outputs_are_kept(node: Node) -> None:
    model = node.ok("POST", f"{MLFLOW}/logged-models", {"experiment_id": "1", "name": "net", "tags": [{"key": "a", "value": "b"}]})["model"]
    id = model["info"]["model_id"]
    assert (
        node.ok("PATCH", f"{MLFLOW}/logged-models/{id}", {"status": "LOGGED_MODEL_READY"})["model"]["info"]["status"]
        == "LOGGED_MODEL_READY"
    )
    node.ok("PATCH", f"{MLFLOW}/logged-models/{id}/tags", {"tags": [{"key": "c", "value": "d"}]})
    node.ok("DELETE", f"{MLFLOW}/logged-models/{id}/tags/a")
    node.ok("POST", f"{MLFLOW}/logged-models/{id}/params", {"params": [{"key": "p", "value": "1"}]})
    node.ok("POST", f"{MLFLOW}/runs/outputs", {"run_id": RUN, "models": [{"model_id": id, "step": 3}]})
    node.ok("POST", f"{MLFLOW}/runs/log-inputs", {"run_id": RUN, "datasets": [{"dataset": {"name": "d", "digest": "1"}}], "models": []})
    batch = {"run_id": RUN, "metrics": [{"key": "acc", "value": 0.5, "timestamp": 1000, "step": 1, "model_id": id}]}
    node.ok("POST", f"{MLFLOW}/runs/log-batch", batch)
    found = node.ok("GET", f"{MLFLOW}/logged-models/{id}")["model"]
    assert found["info"]["tags"] == [{"key": "c", "value": "d"}] and found["data"]["params"] == [{"key": "p", "value": "1"}]
    assert [(m["key"], m["value"]) for m in found["data"]["metrics"]] == [("acc", 0.5)]
    run = node.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")["run"]
    assert run["outputs"] == {"model_outputs": [{"model_id": id, "step": 3}]}
    assert run["inputs"]["dataset_inputs"][0]["dataset"]["name"] == "d"
    assert node.ask("GET", f"{MLFLOW}/logged-models/m-{'0' * 32}")[0] == 404


@pytest.mark.parametrize("call", ["GET /api/3.0/mlflow/traces", "POST /v1/traces", "GET /api/2.0/mlflow/registered-models/get", "GET /x"])
def test_what_it_does_not_have_is_not_found_in_mlflows_shape(node: Node, call: str) -> None:
    method, path = call.split()
    status, answer = node.ask(method, path, {} if method == "POST" else None)
    assert (status, answer["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


# ── files ─────────────────────────────────────────────────────────────────────


def test_a_file_is_taken_read_back_and_carried_to_the_runs_folder(node: Node) -> None:
    data = os.urandom(3_000_000)
    node.ok("PUT", f"{FILES}/plots/a%3D1.png", data)
    node.ok("PUT", f"{FILES}/plots/a%3D1.png", data)
    node.ok("PUT", f"{FILES}/empty", b"")
    node.ok("PUT", "/api/v1/runs/k3x9q2m7/artifacts/mine.txt", b"mine")
    assert node.ask("GET", f"{FILES}/plots/a%3D1.png")[1] == data
    carry_artifacts(node.local, node.dir)
    assert not has_pending_artifacts(node.local)
    assert (node.dir.artifacts / "plots" / "a=1.png").read_bytes() == data
    assert node.ask("GET", f"{FILES}/plots/a%3D1.png")[1] == data
    listed = node.ok("GET", f"{MLFLOW}/artifacts/list?run_id={RUN}")["files"]
    assert listed == [
        {"path": "empty", "is_dir": False, "file_size": 0},
        {"path": "mine.txt", "is_dir": False, "file_size": 4},
        {"path": "plots", "is_dir": True},
    ]
    there = node.ok("GET", f"/api/2.0/mlflow-artifacts/artifacts?path={EXPERIMENT}/{RUN}/artifacts/plots")["files"]
    assert there == [{"path": "a=1.png", "is_dir": False, "file_size": len(data)}]
    node.ok("DELETE", f"{FILES}/plots/a%3D1.png")
    assert node.ask("GET", f"{FILES}/plots/a%3D1.png")[0] == 404
    entries = [record for record in node.records() if record.get("kind") == "artifact"]
    assert [(one["path"], one.get("bytes")) for one in entries] == [
        *[("plots/a=1.png", 3_000_000)] * 2,
        ("empty", 0),
        ("mine.txt", 4),
        ("plots/a=1.png", None),
    ]


@pytest.mark.parametrize("name", ["..", "../x", "a/../../x", "%2e%2e/x", "a%5cb", "a%23b", "", "a//b"])
def test_no_name_leads_out_of_the_folder(node: Node, name: str) -> None:
    for path in (f"{FILES}/{name}", f"/api/2.0/mlflow-artifacts/artifacts/1/models/{name}/artifacts/{name}"):
        status, _ = node.ask("PUT", path, b"x")
        assert status in (400, 404)
    assert not has_pending_artifacts(node.local)


def test_a_models_files_have_a_place_of_their_own(node: Node) -> None:
    id = node.ok("POST", f"{MLFLOW}/logged-models", {"name": "net"})["model"]["info"]["model_id"]
    base = f"/api/2.0/mlflow-artifacts/artifacts/{EXPERIMENT}/models/{id}/artifacts"
    node.ok("PUT", f"{base}/MLmodel", b"flavors: {}")
    node.relay.close(within=10)
    assert (node.dir.models / id / "MLmodel").read_bytes() == b"flavors: {}"


def test_a_file_in_chunks_is_taken_whole(node: Node) -> None:
    parts = urlsplit(node.relay.url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
    connection.request(
        "PUT", f"{parts.path}{FILES}/a", body=iter([b"one ", b"two"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
    )
    assert connection.getresponse().read() == b"{}"
    connection.request("GET", f"{parts.path}{FILES}/a")  # the same connection goes on
    assert connection.getresponse().read() == b"one two"
    connection.close()


def test_a_client_that_dies_within_a_file_leaves_none(node: Node) -> None:
    parts = urlsplit(node.relay.url)
    with socket.create_connection(("127.0.0.1", parts.port or 0)) as client:
        client.sendall(f"PUT {parts.path}{FILES}/half HTTP/1.1\r\nContent-Length: 1000\r\n\r\nhalf of it".encode())
    while any(thread.name == "relay connection" for thread in threading.enumerate()):
        pass
    assert node.ask("GET", f"{FILES}/half")[0] == 404
    assert not has_pending_artifacts(node.local)


@pytest.mark.parametrize(
    "said", [b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a" * 70000, b""]
)
def test_what_is_no_http_costs_a_connection_and_no_more(node: Node, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(node.relay.url).port or 0)) as client:
        client.sendall(said)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(10)
        while client.recv(1000):
            pass
    assert node.ask("GET", "/healthz")[0] == 200


# ── across legs ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTT", b"POST /t/guess/x HTTP/1.1\r\nContent-Length: 99999\r\n\r\n"], ids=["silent", "slow", "wrong"]
)
def test_three_hundred_strangers_keep_no_client_from_its_answer(node: Node, said: bytes) -> None:
    """Nor do they cost the supervisor a thread or, together, more than some files."""
    port = urlsplit(node.relay.url).port or 0
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with ExitStack() as held:
        for _ in range(300):
            stranger = held.enter_context(socket.create_connection(("127.0.0.1", port)))
            stranger.sendall(said)
        for step in range(3):
            node.ok("POST", f"{MLFLOW}/runs/log-metric", {"run_id": RUN, "key": "loss", "value": 0.5, "timestamp": 1, "step": step})
        assert threading.active_count() <= threads + 3
        assert len(os.listdir("/proc/self/fd")) <= files + 300 + 150  # theirs and ours
        node.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")


def test_what_is_nested_without_end_is_refused(node: Node) -> None:
    for depth in (65, 900, 100_000):
        status, _ = node.ask("POST", f"/api/v1/runs/{RUN}/params", b'{"params": {"a": ' + b"[" * depth + b"]" * depth + b"}}")
        assert status == 400


def test_a_stranger_has_seconds_for_a_request(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.05)
    port = urlsplit(node.relay.url).port or 0
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as silent,
        socket.create_connection(("127.0.0.1", port), timeout=30) as slow,
    ):
        slow.sendall(b"GET /t/")
        assert (silent.recv(1), slow.recv(1)) == (b"", b"")


def test_a_client_that_rests_has_no_thread_and_goes_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LINGER", 0.0)
    parts = urlsplit(node.relay.url)
    before = threading.active_count()
    clients = [http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30) for _ in range(20)]
    for turn in range(3):
        for client in clients:
            client.request("GET", f"{parts.path}{MLFLOW}/runs/get?run_id={RUN}", headers={"X-Turn": str(turn)})
        assert [client.getresponse().read() != b"" for client in clients] == [True] * 20
        wait_until(lambda: threading.active_count() <= before)
    for client in clients:
        client.close()


def test_more_requests_than_threads_are_all_answered(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_THREADS", 2)
    parts = urlsplit(node.relay.url)
    clients = [http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30) for _ in range(12)]
    for client in clients:
        client.request("GET", f"{parts.path}{MLFLOW}/runs/get?run_id={RUN}")
    assert [client.getresponse().status for client in clients] == [200] * 12
    for client in clients:
        client.close()


def test_the_next_leg_knows_what_was_told_to_the_one_before(tmp_path: Path) -> None:
    first = node_of(tmp_path, leg=1)
    batch = {"params": [{"key": "lr", "value": "0.1"}, {"key": "seed", "value": "1"}], "tags": [{"key": "team", "value": "a"}]}
    first.ok("POST", f"{MLFLOW}/runs/log-batch", batch)
    model = first.ok("POST", f"{MLFLOW}/logged-models", {"name": "net"})["model"]["info"]["model_id"]
    for step in range(6):
        first.ok("POST", f"{MLFLOW}/runs/log-metric", {"key": "loss", "value": step, "timestamp": 1000 + step, "step": step})
    first.relay.close(within=10)
    for path in first.local.spool.iterdir():
        (first.dir.spool / path.name).write_bytes(path.read_bytes() + b'{"torn')
    second = node_of(tmp_path, leg=2)
    try:
        second.ok("POST", f"{MLFLOW}/runs/log-parameter", {"key": "lr", "value": "0.2"})
        second.ok("POST", f"{MLFLOW}/runs/log-metric", {"key": "loss", "value": 40, "timestamp": 2000, "step": 4})
        found = second.ok("GET", f"{MLFLOW}/runs/get?run_id={RUN}")["run"]
        assert found["info"]["run_id"] == RUN
        assert {p["key"]: p["value"] for p in found["data"]["params"]} == {"lr": "0.2", "seed": "1"}
        assert second.ok("GET", f"{MLFLOW}/logged-models/{model}")["model"]["info"]["name"] == "net"
        shown = second.ok("GET", f"{MLFLOW}/metrics/get-history?run_id={RUN}&metric_key=loss")["metrics"]
        assert [(m["step"], m["value"]) for m in shown] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0)]
    finally:
        second.relay.close(within=10)


def test_many_clients_at_once_lose_nothing(node: Node) -> None:
    def post(rank: int) -> None:
        for step in range(25):
            node.ok("POST", "/runs/x/metrics", {"name": f"loss{rank}", "value": 0.5, "step": step})

    threads = [threading.Thread(target=post, args=(rank,)) for rank in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = node.records()
    assert sorted(record["n"] for record in records) == list(range(201))
    assert len({(step, *values) for step, values in node.points()}) == 200
