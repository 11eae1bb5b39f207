"""Clusters over HTTP: which there are, each as it is now, one question for all who look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.model.job import JobId
from onward.tracker.access.tokens import Rights, Scope
from tests.databases import tracker_in
from tests.unit.test_api_routes import Scene, good


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with tracker_in(tmp_path) as opened:
        yield Scene(tmp_path, opened)


def queue_two(scene: Scene) -> JobId:
    scheduler = scene.place.scheduler
    first = scheduler.submit(scene.place.root, name="first")
    scheduler.submit(scene.place.root, name="second", after=first)
    scheduler.start(first)
    return first


def test_the_list_asks_no_scheduler(scene: Scene) -> None:
    told = good(scene.client.get("/api/v1/clusters"))["clusters"]
    assert {"name": "local", "scheduler": "local", "host": None} in [{k: one[k] for k in ("name", "scheduler", "host")} for one in told]
    assert scene.place.scheduler.asked == 0


def test_a_cluster_is_shown_whole(scene: Scene) -> None:
    queue_two(scene)
    told = good(scene.client.get("/api/v1/clusters/local"))
    assert (told["schema"], told["name"], told["age"], told["trouble"], told["user"]) == (1, "local", 0, "", "ada")
    assert [(job["state"], job["mine"], job["reason"]) for job in told["jobs"]] == [
        ("running", True, ""),
        ("held", True, "waits for job 1"),
    ]
    assert [(node["name"], node["state"], node["cpus_used"]) for node in told["nodes"]] == [("node1", "partly", 1)]
    assert told["openings"][0]["cpus"] == 15


def test_jobs_are_limited_and_counted(scene: Scene) -> None:
    queue_two(scene)
    told = good(scene.client.get("/api/v1/clusters/local?limit=1&jobs=mine"))
    assert (len(told["jobs"]), told["jobs_total"]) == (1, 2)
    assert scene.client.get("/api/v1/clusters/local?limit=-1").status == 400
    assert scene.client.get("/api/v1/clusters/local?jobs=theirs").status == 400


def test_readers_share_a_question_and_get_the_last_picture_while_the_scheduler_is_away(scene: Scene) -> None:
    good(scene.client.get("/api/v1/clusters/local"))
    asked = scene.place.scheduler.asked
    good(scene.client.get("/api/v1/clusters/local"))
    assert scene.place.scheduler.asked == asked
    scene.place.scheduler.down = True
    scene.place.clock.sleep(7)
    told = good(scene.client.get("/api/v1/clusters/local"))
    assert (told["age"], told["trouble"]) == (7, "the fake scheduler is down")


def test_a_cluster_that_never_answered_has_an_empty_picture_with_the_reason_and_one_that_nobody_knows_is_404(scene: Scene) -> None:
    scene.place.scheduler.down = True
    told = good(scene.client.get("/api/v1/clusters/local"))
    assert (told["trouble"], told["taken_at"], told["nodes"], told["jobs"]) == ("the fake scheduler is down", None, [], [])
    assert "no cluster named" in good(scene.client.get("/api/v1/clusters/nowhere"), 404)["detail"]


def test_a_scheduler_that_tells_nothing_of_itself_has_an_empty_picture_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.place.scheduler, "snapshot", None, raising=False)
    told = good(scene.client.get("/api/v1/clusters/local"))
    assert "does not report its nodes" in told["trouble"] and told["taken_at"] is None


def test_a_token_that_may_only_read_may_look_and_a_runs_may_not(scene: Scene) -> None:
    assert scene.as_(Scope.USER, rights=Rights.READ, name="eve").get("/api/v1/clusters/local").status == 200
    run = scene.run()
    assert scene.as_(Scope.RUN, run=run).get("/api/v1/clusters/local").status == 403
    assert scene.as_(Scope.RUN, run=run).get("/api/v1/clusters").status == 403
