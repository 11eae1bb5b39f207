"""The list of runs: every row says why, what next and how far; words that are no filter are searched for, and the answer says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from onward.api.background.chores import tend_runs
from onward.model import events as ev
from onward.model.run import LegEnd
from tests.databases import tracker_in
from tests.unit.test_api_routes import Scene, good


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with tracker_in(tmp_path) as opened:
        yield Scene(tmp_path, opened)


def look(scene: Scene) -> None:
    assert scene.server.services.tracker.files.look(scene.place.desk.roots).problems == []


def row(scene: Scene, asked: str = "") -> dict[str, Any]:
    found = good(scene.client.get(f"/api/v1/runs?{asked}"))["runs"]
    assert len(found) == 1
    return dict(found[0])


def test_a_row_says_why_what_next_how_far_and_since_when(scene: Scene) -> None:
    run = scene.place.play().later(60).begin(1)
    run.log(1, {"kind": "init", "total": 100, "t": 1.0}, {"s": 24, "t": 2.0, "m": {"loss": 0.5, "acc": 0.9}})
    samples = [{"n": n, "t": 1e9 + 10 * n, "kind": "system", "m": {"gpu/a/percent": 80, "gpu/b/percent": 40}} for n in range(3)]
    (run.dir.spool / "leg-0001.system.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    run.publish(1, 20)
    look(scene)
    told = row(scene, "metrics=loss")
    assert told["why"] == "leg 1 runs on node1"
    assert told["next"] == ""
    assert told["progress"] == {"step": 24, "total_steps": 100, "fraction": 0.25}
    assert (told["legs"]["done"], told["legs"]["max"]) == (0, 1000)
    assert told["checkpoint"]["step"] == 20
    assert told["queue_wait_s"] == pytest.approx(60, abs=2)
    assert told["gpu_use"] == pytest.approx(0.6)
    assert list(told["metrics"]) == ["loss"]


def test_a_row_of_a_run_without_a_job_says_so_and_its_page_since_when(scene: Scene) -> None:
    run = scene.place.play().begin(1, successor=False).publish(1, 20).end(1, LegEnd.TIME_LIMIT)
    ended = run.leg(1).ended
    look(scene)
    told = row(scene)
    assert (told["state"], told["no_job"]) == ("waiting", True)
    assert good(scene.client.get(f"/api/v1/runs/{told['id']}/overview"))["no_job_since"] == ended
    run.queue(2)
    look(scene)
    assert row(scene)["no_job"] is False
    assert good(scene.client.get(f"/api/v1/runs/{told['id']}/overview"))["no_job_since"] is None


def test_a_row_of_a_run_that_failed_has_its_cause_and_the_way_on(scene: Scene) -> None:
    run = scene.place.play().begin(1)
    run.end(1, LegEnd.CANCELLED)
    look(scene)
    told = row(scene)
    assert (told["state"], told["why"]) == ("cancelled", "leg 1 was cancelled: as the test says")
    assert "onward resume" in told["next"]
    assert told["legs"]["done"] == 1


def test_a_run_that_waits_says_what_the_scheduler_says_once_it_was_asked(scene: Scene) -> None:
    run = scene.place.play()
    look(scene)
    assert row(scene)["why"] == "leg 1 was submitted"
    run.later(120)
    assert row(scene)["queue_wait_s"] == pytest.approx(120, abs=1)
    before = scene.server.services.tracker.version()
    tend_runs(scene.server.services)
    assert row(scene)["why"] == "leg 1 is queued"
    after = scene.server.services.tracker.version()
    assert after > before  # so that listeners hear of it
    tend_runs(scene.server.services)
    assert scene.server.services.tracker.version() == after


def test_a_run_that_others_execute_has_the_same_columns(scene: Scene) -> None:
    scene.run(name="mine")
    told = row(scene)
    assert told["why"] == "its script records it"
    assert told["legs"] == {"now": 1, "done": 0, "max": None}
    assert (told["checkpoint"], told["queue_wait_s"], told["gpu_use"]) == (None, None, None)
    for state, why in (("finished", "its script recorded its end"), ("failed", "its script set it to failed without a reason")):
        good(scene.client.ask("PATCH", f"/api/v1/runs/{told['id']}", json={"state": state}))
        assert row(scene)["why"] == why
    good(scene.client.ask("PATCH", f"/api/v1/runs/{told['id']}", json={"state": "failed", "reason": "no luck"}))
    told = row(scene)
    assert (told["why"], told["legs"]["done"]) == ("no luck", 1)
    assert good(scene.client.get(f"/api/v1/runs/{told['id']}"))["why"] == "no luck"


def test_metrics_are_all_none_or_those_that_are_named(scene: Scene) -> None:
    run = scene.run()
    scene.log(run, "loss", [1.0])
    scene.log(run, "val/acc", [0.5])
    for asked, names in (
        ("true", ["loss", "val/acc"]),
        ("false", []),
        ("", []),
        ("val/acc,none", ["val/acc"]),
        ("loss,val/acc", ["loss", "val/acc"]),
    ):
        assert list(row(scene, f"metrics={quote(asked)}")["metrics"]) == names
    found = good(scene.client.post("/api/v1/runs/search", {"metrics": ["loss"]}))["runs"]
    assert list(found[0]["metrics"]) == ["loss"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("resnet", ["Resnet 50"]),
        ("RESNET 50", ["Resnet 50"]),
        ("resnet vit", []),
        ("team-x", ["vit"]),
        ("100%", ["vit"]),
        ("100_", []),
        ("imagenet", ["Resnet 50", "vit"]),
        ("drop table runs", []),
        ("naïve 'quoted'", []),
    ],
)
def test_words_that_are_no_filter_are_searched_for_and_the_answer_says_so(scene: Scene, words: str, found: list[str]) -> None:
    scene.run(name="Resnet 50", experiment="ImageNet")
    scene.run(name="vit", experiment="ImageNet", tags={"owner": "Team-X", "done": "100%"})
    answer = good(scene.client.get(f"/api/v1/runs?filter={quote(words)}&count=true"))
    assert sorted(run["name"] for run in answer["runs"]) == found
    assert (answer["read_as"], answer["total"]) == ("text", len(found))
    assert answer["note"].startswith("searched for as words: filter, at ")


def test_a_filter_with_a_slip_in_it_is_told_and_not_searched_for(scene: Scene) -> None:
    scene.run(name="loss < oops")
    assert "expected a value" in good(scene.client.get("/api/v1/runs?filter=metrics.loss%20%3C"), 400)["detail"]
    answer = good(scene.client.get("/api/v1/runs?filter=state%20%3D%20running"))
    assert (answer["read_as"], answer["note"], len(answer["runs"])) == ("filter", "", 1)
    assert len(good(scene.client.post("/api/v1/runs/search", {"text": "oops"}))["runs"]) == 1


def test_a_run_that_is_resumed_waits_from_then_on(scene: Scene) -> None:
    run = scene.place.play().later(30).begin(1).later(300)
    run.end(1, LegEnd.TIME_LIMIT)
    run.later(40)
    look(scene)
    told = row(scene)
    assert told["state"] == "waiting"
    assert told["queue_wait_s"] == pytest.approx(41, abs=2)  # since leg 1 ended, not since its successor was queued
    run.write(ev.Refused(leg=2, at=run.now(), name=next(iter(run.leg(2).submissions)), reason="no such queue"))
    look(scene)
    assert "no such queue" in row(scene)["why"]
    assert "other resources" in row(scene)["next"]
