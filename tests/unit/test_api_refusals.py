"""What a request is refused for is said in the words of who sent it, and nothing is touched."""

from __future__ import annotations

from typing import Any

import pytest

from onward.tracker.access.tokens import Rights, Scope
from tests.unit.test_api_routes import Harness, good, harness

__all__ = ["harness"]


@pytest.mark.parametrize(
    ("body", "at", "problem"),
    [
        ({"slurm_job_id": [1]}, "body.slurm_job_id", "a string or a whole number is expected"),
        ({"slurm_job_id": True}, "body.slurm_job_id", "a string or a whole number is expected"),
        ({"slurm_job_id": "x" * 201}, "body.slurm_job_id", "it is too long: at most 200"),
        ({"seed": {}}, "body.seed", "a whole number or a number or a string is expected"),
        ({"config": [1]}, "body.config", "an object is expected"),
        ({"config": {"k" * 251: 1}}, f"body.config.{'k' * 60}.(a key)", "it is too long: at most 250"),
        ([1], "body", "an object is expected"),
    ],
)
def test_what_is_wrong_with_a_body_is_told_without_the_readers_own_words(harness: Harness, body: Any, at: str, problem: str) -> None:
    answer = harness.client.post("/experiments/e/runs", body)
    assert (answer.status, answer.json["errors"]) == (400, [{"at": at, "problem": problem}])
    assert f"{at}: {problem}" in answer.json["detail"]


@pytest.mark.parametrize(
    ("path", "body", "at"),
    [
        ("/api/v1/runs", {"state": "asleep"}, "body.state"),
        ("/api/v1/runs", {"draft": 5, "folder": "/x"}, "body.draft"),
        ("/api/v1/runs", {"nmae": "x"}, "body.nmae"),
        ("/api/v1/runs/search", {"order": [5]}, "body.order.0"),
        ("/api/v1/series/search", {"runs": ["x"]}, "body.metrics"),
    ],
)
def test_the_place_is_the_one_in_the_body(harness: Harness, path: str, body: Any, at: str) -> None:
    assert [one["at"] for one in harness.client.post(path, body).json["errors"]] == [at]


def test_a_file_under_a_file_is_a_conflict_and_odd_names_say_what_to_do(harness: Harness) -> None:
    run = harness.run()
    files = f"/api/v1/runs/{run}/artifacts"
    good(harness.client.ask("PUT", f"{files}/plots", body=b"x"), 201)
    under = harness.client.ask("PUT", f"{files}/plots/loss.png", body=b"x")
    assert (under.status, under.json["detail"]) == (409, "'plots' is a file or a link, so it cannot contain files")
    for name in ("a%23b.txt", "a%252Fb.txt"):
        odd = harness.client.ask("PUT", f"{files}/{name}", body=b"x")
        assert (odd.status, "another name" in odd.json["hint"]) == (400, True)
    good(harness.client.ask("PUT", f"{files}/a%2Fb.txt", body=b"x"), 201)  # an encoded slash is a slash
    assert [one["path"] for one in good(harness.client.get(files))["artifacts"]] == ["a", "plots"]


def test_an_archived_experiment_takes_no_new_runs_but_those_it_has_go_on(harness: Harness) -> None:
    job = {"slurm_job_id": "4711", "config": {"lr": 1}}
    made = good(harness.client.post("/experiments/digits/runs", job))
    known = harness.run(identity="mine")
    id = harness.opened.tracker.experiments.by_name("digits").id
    good(harness.client.ask("PATCH", f"/api/v1/experiments/{id}", json={"archived": True}))
    for answer in (
        harness.client.post("/experiments/digits/runs", {"slurm_job_id": "4712"}),
        harness.client.post(f"/experiments/{id}/runs", {}),
        harness.client.post("/api/v1/runs", {"experiment": "digits"}),
    ):
        assert (answer.status, answer.json["detail"]) == (409, "experiment 'digits' is archived and cannot get new runs")
        assert f"PATCH /api/v1/experiments/{id}" in answer.json["hint"]
    assert good(harness.client.post("/experiments/digits/runs", job))["run_id"] == made["run_id"]
    assert harness.run(identity="mine") == known
    held = harness.as_(Scope.RUN, run=known, rights=Rights.WRITE)
    assert good(held.post("/experiments/digits/runs", {}))["run_id"] == known
