"""MLflow's two calls for metrics at the hot door: stored and refused as by their routes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.api.access.allowed_hosts import HostRules
from onward.api.app import make_server
from onward.operations.tracker_access.location import OpenTracker, tracker_location
from onward.tracker.access.tokens import Rights, Scope
from tests.api import Answer, Client
from tests.databases import tracker_in
from tests.sandbox import Sandbox

METRIC = "/api/2.0/mlflow/runs/log-metric"
BATCH = "/api/2.0/mlflow/runs/log-batch"
AT = 1_790_000_000_000


class Harness:
    def __init__(self, folder: Path, opened: OpenTracker) -> None:
        sandbox = Sandbox(folder / "desk", {})
        at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self.tracker, self._tokens, self._now = opened.tracker, opened.tokens, sandbox.clock.now()
        self._gate = make_server(opened.tracker, opened.tokens, sandbox.context, at, hosts=HostRules(), tend=False).gate
        self.client = self.as_(Scope.USER, rights=Rights.WRITE)

    def as_(self, scope: Scope, **others: Any) -> Client:
        return Client(self._gate, self._tokens.create(scope, now=self._now, **others)[1].text)

    def run(self) -> str:
        made = self.client.post("/api/2.0/mlflow/runs/create", {"experiment_id": "0", "start_time": AT})
        return str(made.json["run"]["info"]["run_id"])

    def points(self, run: str, key: str = "loss") -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in self.tracker.series.points(run, key)]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def one(run: str, **others: Any) -> dict[str, Any]:
    return {"run_id": run, "key": "loss", "value": 0.5, "timestamp": AT, "step": 3, **others}


def refused(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.json["error_code"]) == (status, code), answer.text


def test_a_point_and_a_batch_are_there_once_they_are_answered(harness: Harness) -> None:
    run = harness.run()
    assert harness.client.post(METRIC, one(run)).json == {}
    many = [{"key": "loss", "value": n / 4, "timestamp": AT + n, "step": n} for n in range(4, 8)]
    assert harness.client.post(BATCH, {"run_id": run, "metrics": many}).json == {}
    assert harness.client.post(BATCH, {"run_id": run, "metrics": many}).json == {}, "sent again it is the same"
    assert harness.points(run) == [(3, 0.5), (4, 1.0), (5, 1.25), (6, 1.5), (7, 1.75)]


def test_what_is_unusual_goes_by_the_route_and_arrives_too(harness: Harness) -> None:
    run = harness.run()
    assert harness.client.post(METRIC, one(run, value="NaN", step="9")).status == 200
    assert harness.client.post(METRIC, {"run_uuid": run, "key": "loss", "value": 1, "timestamp": AT}).status == 200
    mixed = {"metrics": [{"key": "acc", "value": 1, "timestamp": AT, "step": 0}], "params": [{"key": "lr", "value": "0.1"}]}
    assert harness.client.post(BATCH, {"run_id": run, **mixed, "tags": [{"key": "a", "value": "b"}]}).status == 200
    found = harness.points(run)
    assert found[0] == (0, 1.0) and found[1][0] == 9 and math.isnan(found[1][1])
    view = harness.tracker.runs.view(run)
    assert view.params == {"lr": "0.1"} and view.tags["a"] == "b" and harness.points(run, "acc") == [(0, 1.0)]


def test_a_deleted_run_takes_nothing(harness: Harness) -> None:
    run = harness.run()
    harness.client.post("/api/2.0/mlflow/runs/delete", {"run_id": run})
    refused(harness.client.post(METRIC, one(run)), 400, "INVALID_PARAMETER_VALUE")
    refused(harness.client.post(METRIC, one(run, value="NaN")), 400, "INVALID_PARAMETER_VALUE")
    assert harness.points(run) == []


def test_a_run_that_is_not_there_and_bodies_that_are_none_are_refused(harness: Harness) -> None:
    refused(harness.client.post(METRIC, one("0" * 32)), 404, "RESOURCE_DOES_NOT_EXIST")
    for odd in ("a\ud800", "a\x00b", "ü", "a b"):
        assert harness.client.post(METRIC, one(odd)).status in (400, 404)
    for body in (b"", b"[]", b"{", b"null", b"{}"):
        refused(harness.client.post(METRIC, body=body), 400, "INVALID_PARAMETER_VALUE")
    run = harness.run()
    for bad in ({"key": "../up"}, {"value": "high"}, {"timestamp": None}, {"step": 1.5}):
        refused(harness.client.post(METRIC, one(run, **bad)), 400, "INVALID_PARAMETER_VALUE")
    many = [{"key": "loss", "value": 1, "timestamp": AT, "step": n} for n in range(1001)]
    refused(harness.client.post(BATCH, {"run_id": run, "metrics": many}), 400, "INVALID_PARAMETER_VALUE")
    assert harness.points(run) == []


def test_a_token_that_may_not_write_to_the_run_is_refused(harness: Harness) -> None:
    mine, other = harness.run(), harness.run()
    held = harness.as_(Scope.RUN, run=mine)
    assert held.post(METRIC, one(mine)).status == 200
    refused(held.post(METRIC, one(other)), 403, "PERMISSION_DENIED")
    refused(harness.as_(Scope.USER, rights=Rights.READ).post(METRIC, one(mine, step=4)), 403, "PERMISSION_DENIED")
    assert harness.points(other) == [] and harness.points(mine) == [(3, 0.5)]
