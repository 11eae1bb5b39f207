"""The routes: each is behind the gate and described; what is put in comes out; what is wrong is a 4xx with words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from onward.api.access.allowed_hosts import HostRules
from onward.api.app import ApiServer, make_server
from onward.contrib.seed_tracker.job_states import follow_jobs
from onward.errors import SchedulerUnavailable
from onward.model.job import JobId, JobState, JobStatus
from onward.operations.tracker_access.location import OpenTracker, tracker_location
from onward.tracker.access.tokens import Rights, Scope
from tests.api import Answer, Client
from tests.databases import tracker_in
from tests.sandbox import Sandbox


class Harness:
    def __init__(self, folder: Path, opened: OpenTracker, **env: str) -> None:
        self.sandbox = Sandbox(folder / "desk", env)
        self.opened = opened
        at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self.server: ApiServer = make_server(opened.tracker, opened.tokens, self.sandbox.context, at, hosts=HostRules(), tend=False)
        self.files = at.files
        self.client = self.as_(Scope.USER, rights=Rights.ADMIN, name="ada")

    def as_(self, scope: Scope, **others: Any) -> Client:
        return Client(self.server.gate, self.opened.tokens.create(scope, now=self.sandbox.clock.now(), **others)[1].text)

    def run(self, **others: Any) -> str:
        answer = self.client.post("/api/v1/runs", {"experiment": "digits", **others})
        assert answer.status == 201, answer.text
        return str(answer.json["id"])

    def log(self, run: str, name: str, values: list[Any]) -> None:
        entries = [{"name": name, "value": value, "step": step, "timestamp": 1.7e9 + step} for step, value in enumerate(values)]
        assert self.client.post(f"/api/v1/runs/{run}/metrics", {"points": entries}).json == {"stored": len(values)}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def good(answer: Answer, status: int = 200) -> Any:
    assert answer.status == status, answer.text
    return answer.json if answer.body else None


# ── every route ───────────────────────────────────────────────────────────────


def all_routes(routes: Iterable[Any]) -> Iterator[Any]:
    """Those of included routers too."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        yield from all_routes(inner.routes) if inner is not None else [route]


def every_route(server: ApiServer) -> list[tuple[str, str]]:
    """Method and address, placeholders filled in; also of what the OpenAPI does not list."""
    found = []
    for route in all_routes(server.api.routes):
        path = re.sub(r"\{[^}]*\}", "1", route.path)
        found += [(method, path) for method in getattr(route, "methods", None) or ("GET",)]
    return found


def test_every_route_is_401_without_a_token_and_with_a_wrong_one(harness: Harness) -> None:
    routes = every_route(harness.server)
    assert len(routes) > 60
    wrong = "owu_00000000_" + "a" * 43
    for method, path in routes:
        for client, target in (
            (Client(harness.server.gate), path),
            (Client(harness.server.gate, wrong), path),
            (Client(harness.server.gate), f"/t/{wrong}{path}"),
        ):
            assert client.ask(method, target).status == 401, f"{method} {path}"


def test_every_route_refuses_a_foreign_host_and_a_foreign_origin(harness: Harness) -> None:
    for method, path in every_route(harness.server):
        assert harness.client.ask(method, path, headers={"host": "evil.test"}).status == 421, f"{method} {path}"
        assert harness.client.ask(method, path, headers={"origin": "http://evil.test"}).status == 403, f"{method} {path}"


def test_every_operation_is_described(harness: Harness) -> None:
    schema = good(harness.client.get("/api/openapi.json"))
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary"), f"{method} {path}"
            assert operation.get("description"), f"{method} {path}"
            for parameter in operation.get("parameters", ()):
                assert parameter.get("description"), f"{method} {path}: {parameter['name']}"
            for content in operation.get("requestBody", {}).get("content", {}).values():
                anything = content["schema"].get("additionalProperties") is True
                assert "mlflow" not in path or not anything, f"{method} {path}: what may it hold"
            assert "422" not in operation["responses"]
            assert "default" in operation["responses"]
    fields = {(method.upper(), path) for path, operations in schema["paths"].items() for method in operations}
    own = {
        (method, route.path_format)
        for route in all_routes(harness.server.api.routes)
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    assert own <= fields


def test_the_page_of_calls_needs_no_script(harness: Harness) -> None:
    page = harness.client.get("/docs").text
    assert "/api/v1/runs/{run_id}/artifacts/{path}" in page
    assert "<script" not in page
    assert "<script" not in harness.client.get("/").text


def test_an_address_that_is_none_is_404_in_our_words(harness: Harness) -> None:
    assert good(harness.client.get("/nowhere"), 404)["detail"] == "there is nothing at this address"
    assert harness.client.ask("DELETE", "/healthz").status == 405


# ── health ────────────────────────────────────────────────────────────────────


def test_health_readiness_and_figures(harness: Harness) -> None:
    harness.run()
    assert good(harness.client.get("/healthz"))["status"] == "ok"
    assert good(harness.client.get("/readyz"))["status"] == "ready"
    figures = harness.client.get("/metrics")
    assert 'onward_runs{state="running"} 1' in figures.text
    assert 'onward_http_answers_total{method="POST",status="201"} 1' in figures.text
    assert figures.headers["content-type"].startswith("text/plain")
    assert harness.client.get("/metrics", headers={"accept": "application/openmetrics-text"}).text.endswith("# EOF\n")
    harness.server.stopping()
    assert harness.client.get("/readyz").status == 503


# ── experiments, runs ─────────────────────────────────────────────────────────


def test_an_experiment_is_made_listed_renamed_and_archived(harness: Harness) -> None:
    made = good(harness.client.post("/api/v1/experiments", {"name": "digits", "tags": {"team": "a"}}), 201)
    assert harness.client.post("/api/v1/experiments", {"name": "digits"}).status == 409
    assert good(harness.client.get("/api/v1/experiments/digits"))["id"] == made["id"]
    assert good(harness.client.get(f"/api/v1/experiments/{made['id']}"))["tags"] == {"team": "a"}
    good(harness.client.ask("PATCH", "/api/v1/experiments/digits", json={"name": "figures", "archived": True}))
    assert harness.client.get("/api/v1/experiments/digits").status == 404
    assert [one["name"] for one in good(harness.client.get("/api/v1/experiments?archived=true"))["experiments"]] == ["figures"]


def test_a_run_is_made_changed_found_and_archived(harness: Harness) -> None:
    run = harness.run(name="first", params={"lr": 0.1, "layers": [1, 2]}, tags={"gpu": "h200"})
    other = harness.run(name="second", params={"lr": 0.2})
    harness.log(run, "loss", [3.0, 2.0, 1.0])
    harness.log(other, "loss", [3.0, 2.5])
    shown = good(harness.client.get(f"/api/v1/runs/{run}"))
    assert shown["params"] == {"lr": "0.1", "layers": "[1, 2]"}
    assert shown["metrics"]["loss"] == {
        "value": 1.0,
        "step": 2,
        "time": 1.7e9 + 2,
        "low": 1.0,
        "low_step": 2,
        "high": 3.0,
        "high_step": 0,
        "points": 3,
    }
    assert (shown["state"], shown["user"], shown["experiment_name"], len(shown["legs"])) == ("running", "ada", "digits", 1)
    found = good(harness.client.get("/api/v1/runs?filter=metrics.loss%20<%202&count=true"))
    assert ([one["id"] for one in found["runs"]], found["total"], found["next"]) == ([run], 1, None)
    found = good(harness.client.post("/api/v1/runs/search", {"order": ["metrics.loss asc"], "limit": 1, "experiments": ["digits"]}))
    assert ([one["id"] for one in found["runs"]], found["next"]) == ([run], 1)
    changed = good(harness.client.ask("PATCH", f"/api/v1/runs/{run}", json={"name": "best", "state": "finished", "archived": True}))
    assert (changed["name"], changed["state"], changed["ended"] is not None, changed["archived"] is not None) == (
        "best",
        "finished",
        True,
        True,
    )
    assert [one["id"] for one in good(harness.client.get("/api/v1/runs"))["runs"]] == [other]
    assert [one["id"] for one in good(harness.client.get("/api/v1/runs?archived=true"))["runs"]] == [run]


def test_who_asks_again_with_the_same_identity_gets_the_same_run(harness: Harness) -> None:
    assert harness.run(identity="job 7") == harness.run(identity="job 7") != harness.run()


def test_tags_params_and_notes(harness: Harness) -> None:
    run = harness.run(params={"lr": 0.1})
    good(harness.client.post(f"/api/v1/runs/{run}/tags", {"tags": {"a b": "x", "c/d": "y"}}))
    assert harness.client.ask("DELETE", f"/api/v1/runs/{run}/tags/c/d").status == 204
    assert harness.client.ask("DELETE", f"/api/v1/runs/{run}/tags/c/d").status == 404
    assert good(harness.client.post(f"/api/v1/runs/{run}/params", {"params": {"lr": 0.2}, "leg": 2}))["tags"] == {"a b": "x"}
    assert good(harness.client.get(f"/api/v1/runs/{run}/params"))["params"]["lr"] == {"1": "0.1", "2": "0.2"}
    note = good(harness.client.post(f"/api/v1/runs/{run}/notes", {"text": "looks <b>good</b>"}), 201)
    assert good(harness.client.get(f"/api/v1/runs/{run}/notes"))["notes"] == [note]
    assert note["author"] == "ada"
    assert harness.client.ask("DELETE", f"/api/v1/runs/{run}/notes/{note['id']}").status == 204
    assert good(harness.client.get(f"/api/v1/runs/{run}/notes"))["notes"] == []


def test_params_of_runs_side_by_side(harness: Harness) -> None:
    a, b = harness.run(params={"lr": 0.1, "seed": 1}), harness.run(params={"lr": 0.2, "seed": 1, "extra": "x"})
    answer = good(harness.client.get(f"/api/v1/params/diff?run={a}&run={b}"))
    assert answer == {"runs": [a, b], "different": {"lr": ["0.1", "0.2"], "extra": [None, "x"]}, "same": {"seed": "1"}}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/runs", {"experiment": "x", "unknown": 1}),
        ("POST", "/api/v1/runs", {"experiment": "x", "state": "flying"}),
        ("POST", "/api/v1/runs", {"params": {"k" * 251: 1}}),
        ("POST", "/api/v1/runs", {"params": {"k": "v" * 6001}}),
        ("POST", "/api/v1/runs", {"name": "a\x00b"}),
        ("POST", "/api/v1/runs", {"name": "\ud800"}),
        ("POST", "/api/v1/runs/search", {"filter": "metrics.loss <"}),
        ("POST", "/api/v1/runs/search", {"filter": "drop table runs"}),
        ("POST", "/api/v1/runs/search", {"order": ["nonsense sideways"]}),
        ("POST", "/api/v1/runs/search", {"limit": 0}),
        ("GET", "/api/v1/runs?limit=9999999", None),
        ("GET", "/api/v1/runs?offset=-1", None),
        ("GET", "/api/v1/runs?filter=%00", None),
        ("GET", "/api/v1/params/diff?run=1", None),
        ("GET", "/api/v1/series?run=1&metric=x&buckets=0", None),
        ("POST", "/api/v1/tokens", {"scope": "login"}),
        ("POST", "/api/v1/tokens", {"scope": "run"}),
        ("POST", "/api/v1/records", {"run": "x", "leg": 0, "writer": "w", "records": []}),
    ],
)
def test_bad_input_is_a_400_with_words(harness: Harness, method: str, path: str, body: Any) -> None:
    answer = harness.client.ask(method, path, json=body)
    assert answer.status == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/metrics",
        "/points?metric=loss",
        "/params",
        "/notes",
        "/artifacts",
        "/artifacts/a",
        "/logs",
        "/logs/1/out",
        "/checkpoints",
        "/export",
    ],
)
def test_a_run_that_is_not_there_is_404(harness: Harness, path: str) -> None:
    for run in ("nosuchrn", "a%00b", "%F0%9F%98%80"):
        assert harness.client.get(f"/api/v1/runs/{run}{path}").status in (400, 404)


# ── points ────────────────────────────────────────────────────────────────────


def test_a_chart_has_the_lowest_and_highest_of_each_bucket_and_the_true_count(harness: Harness) -> None:
    run = harness.run()
    harness.log(run, "loss", [float(i % 10) for i in range(1000)])
    [chart] = good(harness.client.get(f"/api/v1/series?run={run}&metric=loss&buckets=10&means=true&times=true"))["series"]
    assert (chart["points"], chart["exact"], len(chart["steps"])) == (1000, False, len(chart["lows"]))
    assert set(chart["lows"]) == {0.0}
    assert set(chart["highs"]) == {9.0}
    assert chart["means"][0] == pytest.approx(4.5, abs=0.5)
    assert chart["times"][0] == 1.7e9
    [few] = good(harness.client.post("/api/v1/series/search", {"runs": [run], "metrics": ["loss", "none"], "first": 5, "last": 7}))[
        "series"
    ]
    assert (few["steps"], few["values"], few["exact"]) == ([5, 6, 7], [5.0, 6.0, 7.0], True)


def test_nan_and_infinities_are_kept(harness: Harness) -> None:
    run = harness.run()
    harness.log(run, "loss", [1.0, math.nan, "NaN", "Infinity", "-inf", 2.0])
    points = good(harness.client.get(f"/api/v1/runs/{run}/points?metric=loss"))["points"]
    assert [point["value"] for point in points] == [1.0, "NaN", "NaN", "Infinity", "-Infinity", 2.0]
    [chart] = good(harness.client.get(f"/api/v1/series?run={run}&metric=loss"))["series"]
    assert chart["values"] == [1.0, "NaN", "NaN", "Infinity", "-Infinity", 2.0]
    assert chart["bads"] == [0, 1, 1, 1, 1, 0]
    [coarse] = good(harness.client.get(f"/api/v1/series?run={run}&metric=loss&buckets=3"))["series"]
    assert (coarse["lows"], coarse["highs"], coarse["bads"]) == ([1.0, None, 2.0], [1.0, None, 2.0], [1, 2, 1])
    assert good(harness.client.get(f"/api/v1/runs/{run}/metrics"))["metrics"]["loss"]["high"] == 2.0


def test_raw_points_come_in_pages(harness: Harness) -> None:
    run = harness.run()
    harness.log(run, "loss", list(range(7)))
    first = good(harness.client.get(f"/api/v1/runs/{run}/points?metric=loss&limit=4"))
    second = good(harness.client.get(f"/api/v1/runs/{run}/points?metric=loss&limit=4&offset={first['next']}"))
    assert [p["step"] for p in first["points"] + second["points"]] == list(range(7))
    assert second["next"] is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"null",
        b'{"name": "a"}',
        b'{"value": 1}',
        b'{"name": "", "value": 1}',
        b'{"name": 3, "value": 1}',
        b'{"name": "a", "value": null}',
        b'{"name": "a", "value": true}',
        b'{"name": "a", "value": "high"}',
        b'{"name": "a", "value": 1, "step": 9223372036854775808}',
        b'{"name": "a", "value": 1, "step": 1.5}',
        b'{"name": "a", "value": 1, "step": "x"}',
        b'{"name": "a", "value": 1, "timestamp": -1}',
        b'{"name": "a", "value": 1, "timestamp": "yesterday"}',
        b'{"name": "a\\u0000", "value": 1}',
        b'{"name": "\\ud800", "value": 1}',
        b'{"name": "a", "value": 1' + b"0" * 400 + b"}",
        b'{"points": 3}',
        b'{"points": [3]}',
        b"[" * 100_000,
    ],
)
def test_a_point_that_is_none_is_a_400_at_the_hot_door_too(harness: Harness, body: bytes) -> None:
    run = harness.run()
    for path in (f"/runs/{run}/metrics", f"/api/v1/runs/{run}/metrics", f"/runs/{run}/metrics/batch"):
        answer = harness.client.post(path, body=body)
        assert answer.status == 400, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
    assert good(harness.client.get(f"/api/v1/runs/{run}/metrics"))["metrics"] == {}


def test_points_of_a_run_that_is_not_there_are_a_404_and_too_many_a_4xx(harness: Harness) -> None:
    assert harness.client.post("/runs/nosuchrn/metrics", {"name": "a", "value": 1}).status == 404
    many = {"points": [{"name": "a", "value": 1, "step": i} for i in range(10_001)]}
    assert harness.client.post(f"/api/v1/runs/{harness.run()}/metrics", many).status == 400
    assert harness.client.post(f"/runs/{harness.run()}/metrics", body=b'"' + b"x" * (1 << 21) + b'"').status == 413
    unsaid = harness.client.post("/api/v1/runs", body=b"x" * (2 << 20), headers={"content-length": None})
    assert (unsaid.status, unsaid.json["detail"]) == (413, "the body is too long")


def test_a_reader_cannot_log_and_a_run_token_only_to_its_run(harness: Harness) -> None:
    run, other = harness.run(), harness.run()
    point = {"name": "a", "value": 1}
    assert harness.as_(Scope.USER, rights=Rights.READ).post(f"/runs/{run}/metrics", point).status == 403
    mine = harness.as_(Scope.RUN, run=run)
    assert mine.post(f"/runs/{run}/metrics", point).status == 200
    assert mine.post(f"/runs/{other}/metrics", point).status == 403
    records = {"leg": 1, "writer": "w", "records": [{"n": 0, "t": 1.7e9, "s": 0, "m": {"b": 1}}]}
    assert good(mine.post("/api/v1/records", {"run": run, **records}))["points"] == 1
    assert good(mine.post("/api/v1/records", {"run": run, **records}))["repeated"] == 1
    assert mine.post("/api/v1/records", {"run": other, **records}).status == 403
    assert good(harness.client.get(f"/api/v1/runs/{other}/metrics"))["metrics"] == {}


# ── older scripts ─────────────────────────────────────────────────────────────


def test_a_job_that_is_started_again_finds_its_run_and_its_curve_is_one(harness: Harness) -> None:
    asked = {"slurm_job_id": "4711", "seed": 1, "config": {"lr": 0.1, "epochs": 5}, "slurm_node": "n1", "gpu_type": "h200"}
    first = good(harness.client.post("/experiments/exp-001/runs", asked))
    assert good(harness.client.post("/experiments/exp-001/runs", asked)) == first  # asked twice, nothing logged
    run = first["run_id"]
    for step in range(4):
        good(harness.client.post(f"/runs/{run}/metrics", {"name": "train_loss", "value": 10.0 - step, "step": step}))
    again = good(harness.client.post("/experiments/exp-001/runs", {**asked, "slurm_node": "n2"}))
    assert again == {"run_id": run, "leg": 2}
    for step in range(2, 6):
        good(
            harness.client.post(
                f"/runs/{run}/metrics/batch", {"step": step, "metrics": {"train_loss": 20.0 - step}, "timestamp": 1.8e9 + step}
            )
        )
    [chart] = good(harness.client.get(f"/api/v1/series?run={run}&metric=train_loss"))["series"]
    assert chart["steps"] == [0, 1, 2, 3, 4, 5]
    assert chart["values"] == [10.0, 9.0, 18.0, 17.0, 16.0, 15.0]
    assert chart["superseded"] == 2
    shown = good(harness.client.get(f"/api/v1/runs/{run}"))
    assert [(leg["leg"], leg["job"]) for leg in shown["legs"]] == [(1, "4711"), (2, "4711")]
    assert (shown["experiment_name"], shown["params"]["lr"], shown["params"]["seed"]) == ("exp-001", "0.1", "1")


def test_other_jobs_params_or_experiments_are_other_runs(harness: Harness) -> None:
    asked = {"slurm_job_id": "4711", "seed": 1, "config": {"lr": 0.1}}
    bodies = [asked, {**asked, "slurm_job_id": "4712"}, {**asked, "seed": 2}, {**asked, "config": {"lr": 0.2}}, {"slurm_job_id": None}, {}]
    found = [good(harness.client.post("/experiments/e/runs", body))["run_id"] for body in bodies]
    found.append(good(harness.client.post("/experiments/f/runs", asked))["run_id"])
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("asked", ["team/digits", "team%2Fdigits", "a/runs"])
def test_an_experiment_may_have_slashes_in_its_name(harness: Harness, asked: str) -> None:
    run = good(harness.client.post(f"/experiments/{asked}/runs", {"slurm_job_id": "1"}))["run_id"]
    assert good(harness.client.get(f"/api/v1/runs/{run}"))["experiment_name"] == asked.replace("%2F", "/")


def test_a_runs_own_token_always_gets_that_run(harness: Harness) -> None:
    run = harness.run()
    made = good(harness.as_(Scope.RUN, run=run).post("/experiments/any/runs", {"slurm_job_id": "1", "config": {"lr": 1}}))
    assert made["run_id"] == run


def test_a_file_is_told_of_and_never_opened(harness: Harness) -> None:
    run = harness.run()
    fields = {"path": "/shared/checkpoints/../best.pt", "type": "checkpoint", "size_bytes": 7}
    good(harness.client.post(f"/runs/{run}/artifacts", fields), 201)
    [one] = good(harness.client.get(f"/api/v1/runs/{run}/artifacts"))["artifacts"]
    assert (one["path"], one["stored"], one["bytes"]) == (fields["path"], False, 7)


def test_a_run_can_say_how_it_is(harness: Harness) -> None:
    run = good(harness.client.post("/experiments/e/runs", {}))["run_id"]
    assert good(harness.client.ask("PATCH", f"/runs/{run}", json={"status": "completed"})) == {"run_id": run, "status": "finished"}
    assert good(harness.client.get(f"/runs/{run}"))["status"] == "finished"
    assert harness.client.ask("PATCH", f"/runs/{run}", json={"status": "exploded"}).status == 400


def test_a_hook_makes_the_server_look_and_settles_nothing(harness: Harness) -> None:
    run = good(harness.client.post("/experiments/e/runs", {"slurm_job_id": "4711"}))["run_id"]
    looked: list[int] = []
    harness.server.services.hinted = lambda: looked.append(1)
    hook = harness.as_(Scope.WEBHOOK)
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = hook.post("/webhooks/slurm", body=b"job_id=4711&status=completed&exit_code=0", headers=form)
    assert good(answer) == {"received": True}
    assert looked == [1]
    assert good(harness.client.get(f"/runs/{run}"))["status"] == "running"
    for body in (b"", b"job_id=", b"status=completed", b"job_id=" + b"1" * 300, b"&" * 100, b"job_id=1%3Brm%20-rf%20/", b"job_id=abc"):
        assert hook.post("/webhooks/slurm", body=body, headers=form).status == 400
    for body in (b"", b"{", b"[]", b"[" * 100_000):
        assert hook.post("/webhooks/slurm", body=body, headers={"content-type": "application/json"}).status == 400
    assert looked == [1]


class Answers:
    """As much of a scheduler as is asked here."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, JobStatus] = {}
        self.asked: list[set[str]] = []

    def status(self, jobs: set[JobId]) -> dict[JobId, JobStatus]:
        self.asked.append(set(jobs))
        if not self.jobs:
            raise SchedulerUnavailable("squeue did not answer")
        return {job: self.jobs[job] for job in jobs if job in self.jobs}

    def set(self, job: str, state: JobState, **others: Any) -> None:
        self.jobs[JobId(job)] = JobStatus(id=JobId(job), name="x", state=state, **others)


def test_the_scheduler_says_how_such_a_job_is_and_silence_changes_nothing(harness: Harness) -> None:
    answers = Answers()
    harness.sandbox.context.make_scheduler = lambda _: answers  # type: ignore[assignment,return-value]
    runs = {
        job: good(harness.client.post("/experiments/e/runs", {"slurm_job_id": job}))["run_id"] for job in ("1", "2", "3", "4", "-x", "5")
    }
    svc = harness.server.services

    def states() -> list[str]:
        return [good(harness.client.get(f"/runs/{run}"))["status"] for run in runs.values()]

    assert "nothing was changed" in follow_jobs(svc)[0]
    assert states() == ["running"] * 6
    answers.set("1", JobState.FINISHED, ended=harness.sandbox.clock.now() + 5)
    answers.set("2", JobState.OUT_OF_MEMORY)
    answers.set("3", JobState.CANCELLED, submitted=harness.sandbox.clock.now() + 1000)  # another's, with the id it had
    answers.set("4", JobState.QUEUED)
    answers.set("5", JobState.CANCELLED, submitted=10.0, ended=harness.sandbox.clock.now() - 3600)  # over before this one began
    assert follow_jobs(svc) == []
    assert states() == ["finished", "failed", "running", "waiting", "running", "running"]
    assert answers.asked[-1] == {"1", "2", "3", "4", "5"}
    shown = good(harness.client.get(f"/api/v1/runs/{runs['2']}"))
    assert ("out of memory" in shown["reason"], [leg["state"] for leg in shown["legs"]]) == (True, ["out_of_memory"])
    follow_jobs(svc)
    assert answers.asked[-1] == {"3", "4", "5"}


def test_a_job_that_was_cut_and_starts_again_runs_again_and_its_leg_keeps_its_end(harness: Harness) -> None:
    answers = Answers()
    harness.sandbox.context.make_scheduler = lambda _: answers  # type: ignore[assignment,return-value]
    asked = {"slurm_job_id": "7"}
    run = good(harness.client.post("/experiments/e/runs", asked))["run_id"]

    def shown() -> tuple[str, str, list[str]]:
        answer = good(harness.client.get(f"/api/v1/runs/{run}"))
        return answer["state"], answer["reason"], [leg["state"] for leg in answer["legs"]]

    answers.set("7", JobState.NODE_FAILED)
    follow_jobs(harness.server.services)
    assert shown()[0] == "failed"
    assert good(harness.client.post("/experiments/e/runs", asked))["leg"] == 1  # nothing was logged
    assert shown() == ("running", "", ["running"])
    good(harness.client.post(f"/runs/{run}/metrics", {"name": "loss", "value": 1, "step": 0}))
    answers.set("7", JobState.PREEMPTED)
    follow_jobs(harness.server.services)
    for _ in range(3):  # one a rank
        assert good(harness.client.post("/experiments/e/runs", asked))["leg"] == 2
    assert shown() == ("running", "", ["preempted", "running"])


# ── files ─────────────────────────────────────────────────────────────────────


def test_a_file_goes_in_and_comes_out_as_an_attachment(harness: Harness) -> None:
    run = harness.run()
    page = b"<script>alert(1)</script>" * 1000
    made = good(harness.client.ask("PUT", f"/api/v1/runs/{run}/artifacts/plots/a=1%20b.html", body=page), 201)
    assert made["bytes"] == len(page)
    [folder] = good(harness.client.get(f"/api/v1/runs/{run}/artifacts"))["artifacts"]
    assert (folder["path"], folder["is_dir"]) == ("plots", True)
    [file] = good(harness.client.get(f"/api/v1/runs/{run}/artifacts?path=plots"))["artifacts"]
    assert (file["path"], file["sha256"]) == ("plots/a=1 b.html", made["sha256"])
    answer = harness.client.get(f"/api/v1/runs/{run}/artifacts/plots/a=1%20b.html")
    assert answer.body == page
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["content-type"] == "application/octet-stream"
    assert harness.client.ask("DELETE", f"/api/v1/runs/{run}/artifacts/plots/a=1%20b.html").status == 204
    assert harness.client.get(f"/api/v1/runs/{run}/artifacts/plots/a=1%20b.html").status == 404


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "..%2fx",
        "%2e%2e/x",
        "%2e%2e%2fx",
        "a/../../x",
        "a%5c..%5cx",
        "a\\x",
        "a#x",
        "a%23x",
        "%252e%252e/x",
        "a%00",
        "//etc/passwd",
        "%2fetc%2fpasswd",
        "a/",
        "",
    ],
)
def test_a_path_that_leads_elsewhere_is_a_4xx_and_touches_nothing(harness: Harness, tmp_path: Path, path: str) -> None:
    run = harness.run()
    before = sorted(map(str, tmp_path.rglob("*")))
    for method in ("PUT", "GET", "DELETE"):
        answer = harness.client.ask(method, f"/api/v1/runs/{run}/artifacts/{path}", body=b"x" if method == "PUT" else None)
        if not (method == "GET" and path == ""):
            assert 400 <= answer.status < 500, f"{method} {path}: {answer.status}"
    if path:
        assert 400 <= harness.client.get(f"/api/v1/runs/{run}/artifacts?path={path.replace('#', '%23')}").status < 500
    after = [one for one in sorted(map(str, tmp_path.rglob("*"))) if not one.endswith(("-wal", "-shm"))]
    assert after == [one for one in before if not one.endswith(("-wal", "-shm"))]


def test_files_of_a_run_of_ours_lie_in_its_folder(harness: Harness) -> None:
    played = harness.sandbox.play()
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    run = played.spec.id
    good(harness.client.ask("PUT", f"/api/v1/runs/{run}/artifacts/a.txt", body=b"x"), 201)
    assert (played.dir.artifacts / "a.txt").read_bytes() == b"x"


# ── logs, checkpoints ─────────────────────────────────────────────────────────


def test_logs_are_listed_and_read_in_parts(harness: Harness) -> None:
    played = harness.sandbox.play()
    played.dir.log(1, "out").write_bytes(b"0123456789")
    played.dir.supervisor_log.write_text("began\n")
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    run = played.spec.id
    assert [(log["leg"], log["stream"], log["bytes"]) for log in good(harness.client.get(f"/api/v1/runs/{run}/logs"))["logs"]] == [
        (0, "supervisor", 6),
        (1, "out", 10),
    ]
    part = harness.client.get(f"/api/v1/runs/{run}/logs/1/out?offset=2&limit=3")
    assert (part.text, part.headers["x-next-offset"], part.headers["x-size"]) == ("234", "5", "10")
    assert harness.client.get(f"/api/v1/runs/{run}/logs/1/out?offset=-3").text == "789"
    assert harness.client.get(f"/api/v1/runs/{run}/logs/0/supervisor").text == "began\n"
    assert harness.client.get(f"/api/v1/runs/{run}/logs/2/out").status == 404
    assert harness.client.get(f"/api/v1/runs/{run}/logs/1/spec.json").status == 400
    assert good(harness.client.get(f"/api/v1/runs/{run}/checkpoints")) == {"checkpoints": []}


def test_a_folder_elsewhere_is_never_opened(harness: Harness, tmp_path: Path) -> None:
    from onward.tracker.runs.registry import NewRun

    played = harness.sandbox.play()
    stray = tmp_path / "stray"
    played.dir.path.rename(stray)
    run = harness.opened.tracker.runs.create(NewRun(experiment="x", folder=str(stray))).run_id
    (stray / "logs" / "leg-0001.out").write_text("not for you")
    assert good(harness.client.get(f"/api/v1/runs/{run}/logs"))["logs"] == []
    assert harness.client.get(f"/api/v1/runs/{run}/logs/1/out").status == 404


def test_a_run_of_ours_can_be_cancelled_and_its_state_is_not_ours_to_set(harness: Harness) -> None:
    played = harness.sandbox.play()
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    run = played.spec.id
    assert harness.client.ask("PATCH", f"/api/v1/runs/{run}", json={"state": "finished"}).status == 409
    good(harness.client.post(f"/api/v1/runs/{run}/cancel"))
    assert played.run.state == "cancelled"
    assert harness.client.post(f"/api/v1/runs/{run}/fly").status == 404
    assert harness.client.post(f"/api/v1/runs/{harness.run()}/cancel").status == 404


# ── export ────────────────────────────────────────────────────────────────────


def test_runs_and_points_are_exported(harness: Harness) -> None:
    run = harness.run(name="=cmd()", params={"lr": 0.1})
    harness.log(run, "loss", [1.0, math.inf])
    lines = harness.client.get("/api/v1/export/runs").text.splitlines()
    assert len(lines) == 2
    assert "params.lr" in lines[0]
    assert "'=cmd()" in lines[1]
    table = good(harness.client.get("/api/v1/export/runs?format=json"))
    assert dict(zip(table["columns"], table["rows"][0], strict=True))["metrics.loss"] == "Infinity"
    assert harness.client.get(f"/api/v1/runs/{run}/export").text.splitlines() == [
        "metric,step,time,value,leg,superseded",
        "loss,0,1700000000.0,1.0,1,False",
        "loss,1,1700000001.0,Infinity,1,False",
    ]
    assert len(good(harness.client.get(f"/api/v1/runs/{run}/export?format=json"))["rows"]) == 2


# ── tokens ────────────────────────────────────────────────────────────────────


def test_an_admin_makes_and_revokes_tokens(harness: Harness) -> None:
    made = good(harness.client.post("/api/v1/tokens", {"name": "laptop", "rights": "read", "expires_in": 60}), 201)
    other = Client(harness.server.gate, made["secret"])
    assert other.get("/api/v1/runs").status == 200
    listed = harness.client.get("/api/v1/tokens")
    assert made["secret"].split("_", 2)[2] not in listed.text
    assert made["token"]["id"] in [one["id"] for one in listed.json["tokens"]]
    good(harness.client.ask("DELETE", f"/api/v1/tokens/{made['token']['id']}"))
    assert other.get("/api/v1/runs").status == 401
    assert harness.client.ask("DELETE", "/api/v1/tokens/deadbeef").status == 404
    assert harness.client.post("/api/v1/tokens", {"scope": "run", "run": "nosuchrn"}).status == 404


def test_json_is_strict(harness: Harness) -> None:
    run = harness.run(params={"x": math.nan})
    harness.log(run, "loss", [math.nan])

    def refuse(word: str) -> Any:
        raise AssertionError(word)

    for path in ("/api/v1/runs", f"/api/v1/runs/{run}", f"/api/v1/runs/{run}/metrics", f"/api/v1/series?run={run}&metric=loss"):
        json.loads(harness.client.get(path).body, parse_constant=refuse)
