"""Clusters over HTTP: which there are, each as it is now, one question for all who look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.model.job import JobId
from onward.tracker.access.tokens import Rights, Scope
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def queue_two(harness: Harness) -> JobId:
    scheduler = harness.sandbox.scheduler
    first = scheduler.submit(harness.sandbox.root, name="first")
    scheduler.submit(harness.sandbox.root, name="second", after=first)
    scheduler.start(first)
    return first


def test_the_list_asks_no_scheduler(harness: Harness) -> None:
    answer = good(harness.client.get("/api/v1/clusters"))["clusters"]
    assert {"name": "local", "scheduler": "local", "host": None} in [{k: one[k] for k in ("name", "scheduler", "host")} for one in answer]
    assert harness.sandbox.scheduler.asked == 0


def test_a_cluster_is_shown_whole(harness: Harness) -> None:
    queue_two(harness)
    answer = good(harness.client.get("/api/v1/clusters/local"))
    assert (answer["schema"], answer["name"], answer["age"], answer["trouble"], answer["user"]) == (1, "local", 0, "", "ada")
    assert [(job["state"], job["mine"], job["reason"]) for job in answer["jobs"]] == [
        ("running", True, ""),
        ("held", True, "waits for job 1"),
    ]
    assert [(node["name"], node["state"], node["cpus_used"]) for node in answer["nodes"]] == [("node1", "partly", 1)]
    assert answer["openings"][0]["cpus"] == 15


def test_jobs_are_limited_and_counted(harness: Harness) -> None:
    queue_two(harness)
    answer = good(harness.client.get("/api/v1/clusters/local?limit=1&jobs=mine"))
    assert (len(answer["jobs"]), answer["jobs_total"]) == (1, 2)
    assert harness.client.get("/api/v1/clusters/local?limit=-1").status == 400
    assert harness.client.get("/api/v1/clusters/local?jobs=theirs").status == 400


def test_readers_share_a_question_and_get_the_last_picture_while_the_scheduler_is_away(harness: Harness) -> None:
    good(harness.client.get("/api/v1/clusters/local"))
    asked = harness.sandbox.scheduler.asked
    good(harness.client.get("/api/v1/clusters/local"))
    assert harness.sandbox.scheduler.asked == asked
    harness.sandbox.scheduler.down = True
    harness.sandbox.clock.sleep(7)
    answer = good(harness.client.get("/api/v1/clusters/local"))
    assert (answer["age"], answer["trouble"]) == (7, "the fake scheduler is down")


def test_a_cluster_that_never_answered_has_an_empty_picture_with_the_reason_and_one_that_nobody_knows_is_404(harness: Harness) -> None:
    harness.sandbox.scheduler.down = True
    answer = good(harness.client.get("/api/v1/clusters/local"))
    assert (answer["trouble"], answer["taken_at"], answer["nodes"], answer["jobs"]) == ("the fake scheduler is down", None, [], [])
    assert "no cluster named" in good(harness.client.get("/api/v1/clusters/nowhere"), 404)["detail"]


def test_a_scheduler_that_tells_nothing_of_itself_has_an_empty_picture_too(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.sandbox.scheduler, "snapshot", None, raising=False)
    answer = good(harness.client.get("/api/v1/clusters/local"))
    assert "does not report its nodes" in answer["trouble"] and answer["taken_at"] is None


def test_a_token_that_may_only_read_may_look_and_a_runs_may_not(harness: Harness) -> None:
    assert harness.as_(Scope.USER, rights=Rights.READ, name="eve").get("/api/v1/clusters/local").status == 200
    run = harness.run()
    assert harness.as_(Scope.RUN, run=run).get("/api/v1/clusters/local").status == 403
    assert harness.as_(Scope.RUN, run=run).get("/api/v1/clusters").status == 403
