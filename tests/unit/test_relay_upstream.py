"""What the relay cannot know it asks the tracker's server, shortly; where that is away it answers by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.rundir.layout import LegLocal, RunDir
from onward.supervisor.relay.http_messages import RelayAnswer, RelayRequest
from onward.supervisor.relay.mlflow import number_for_experiment
from onward.supervisor.relay.routes import Relay
from onward.supervisor.relay.server import LoopbackServer
from onward.supervisor.telemetry.tracker_server import TrackerConnection
from tests.histories import make_spec
from tests.unit.test_relay import Node

EXPERIMENT = str(number_for_experiment("digits"))


class Server:
    """One that knows the experiment by the number 7."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.status = 200
        self._server = LoopbackServer(self._answer)
        self.url = f"http://127.0.0.1:{self._server.port}/onward"

    def close(self) -> None:
        self._server.close()

    def _answer(self, request: RelayRequest) -> RelayAnswer:
        self.asked.append((request.method, request.target, request.body.read(1 << 20) or b""))
        if "get-by-name" in request.target:
            return RelayAnswer.of({"experiment": {"experiment_id": "7"}})
        return RelayAnswer.of({"runs": [], "from": "the server"}, self.status)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def node(server: Server, tmp_path: Path) -> Iterator[Node]:
    dir, local = RunDir(tmp_path / "run"), LegLocal(tmp_path / "node")
    dir.make()
    local.make()
    made = Node(dir=dir, local=local, relay=Relay(make_spec(), dir, local, leg=1, upstream=TrackerConnection(server.url, "secret")))
    yield made
    made.relay.close(within=10)


def test_a_search_goes_to_the_server_under_its_own_numbers(server: Server, node: Node) -> None:
    answer = node.ok("POST", "/api/2.0/mlflow/runs/search", {"experiment_ids": [EXPERIMENT]})
    assert answer["from"] == "the server"
    method, target, body = server.asked[-1]
    assert (method, target, json.loads(body)) == ("POST", "/onward/api/2.0/mlflow/runs/search", {"experiment_ids": ["7"]})


def test_what_it_does_not_know_is_asked_and_what_it_knows_is_not(server: Server, node: Node) -> None:
    assert node.ok("GET", "/api/v1/runs/other?x=1")["from"] == "the server"
    assert server.asked[-1][:2] == ("GET", "/onward/api/v1/runs/other?x=1")
    before = len(server.asked)
    node.ok("POST", "/runs/x/metrics", {"name": "loss", "value": 1, "step": 1})
    node.ok("GET", "/api/2.0/mlflow/runs/get?run_id=x")
    assert node.ask("POST", "/api/v1/unknown", {})[0] == 404  # writing is never passed on
    assert len(server.asked) == before


def test_a_server_that_is_away_costs_one_short_wait(server: Server, node: Node) -> None:
    server.status = 503
    for _ in range(20):
        assert "from" not in node.ok("POST", "/api/2.0/mlflow/runs/search", {"experiment_ids": ["1"]})
    assert node.ask("GET", "/api/v1/runs/other")[0] == 404
    assert len(server.asked) == 1


def test_a_server_that_is_gone_keeps_nobody_from_logging(server: Server, node: Node) -> None:
    server.close()
    for step in range(50):
        node.ok("POST", "/runs/x/metrics", {"name": "loss", "value": 1, "step": step})
    assert len(node.points()) == 50
