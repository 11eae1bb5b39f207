"""The list of runs: every row says why, what next and how far; words that are no filter are searched for, and the answer says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import update

from onward.api.background.chores import tend_runs
from onward.model import events as ev
from onward.model.run import LegEnd
from onward.tracker.schema import runs
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def look(harness: Harness) -> None:
    assert harness.server.services.tracker.files.look(harness.sandbox.context.roots).problems == []


def row(harness: Harness, asked: str = "") -> dict[str, Any]:
    found = good(harness.client.get(f"/api/v1/runs?{asked}"))["runs"]
    assert len(found) == 1
    return dict(found[0])


def test_a_row_says_why_what_next_how_far_and_since_when(harness: Harness) -> None:
    run = harness.sandbox.play().later(60).begin(1)
    run.log(1, {"kind": "init", "total": 100, "t": 1.0}, {"s": 24, "t": 2.0, "m": {"loss": 0.5, "acc": 0.9}})
    samples = [{"n": n, "t": 1e9 + 10 * n, "kind": "system", "m": {"gpu/a/percent": 80, "gpu/b/percent": 40}} for n in range(3)]
    (run.dir.spool / "leg-0001.system.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    run.publish(1, 20)
    look(harness)
    fields = row(harness, "metrics=loss")
    assert fields["why"] == "leg 1 runs on node1"
    assert fields["next"] == ""
    assert fields["progress"] == {"step": 24, "total_steps": 100, "fraction": 0.25}
    assert (fields["legs"]["done"], fields["legs"]["max"]) == (0, 1000)
    assert fields["checkpoint"]["step"] == 20
    assert fields["queue_wait_s"] == pytest.approx(60, abs=2)
    assert fields["gpu_use"] == pytest.approx(0.6)
    assert list(fields["metrics"]) == ["loss"]


def test_a_row_of_a_run_without_a_job_says_so_and_its_page_since_when(harness: Harness) -> None:
    run = harness.sandbox.play().begin(1, successor=False).publish(1, 20).end(1, LegEnd.TIME_LIMIT)
    ended = run.leg(1).ended
    look(harness)
    fields = row(harness)
    assert (fields["state"], fields["no_job"]) == ("waiting", True)
    assert good(harness.client.get(f"/api/v1/runs/{fields['id']}/overview"))["no_job_since"] == ended
    run.queue(2)
    look(harness)
    assert row(harness)["no_job"] is False
    assert good(harness.client.get(f"/api/v1/runs/{fields['id']}/overview"))["no_job_since"] is None


def test_a_row_says_since_when_nothing_was_heard_of_a_leg_that_trains(harness: Harness) -> None:
    def heard(seconds_ago: float) -> float:
        at = harness.sandbox.clock.now() - seconds_ago
        harness.opened.tracker.write(lambda batch: batch.connection.execute(update(runs).values(updated=at)))
        return at

    run = harness.sandbox.play().begin(1)
    look(harness)
    heard(290)
    assert row(harness)["silent_since"] is None
    at = heard(310)
    assert row(harness)["silent_since"] == pytest.approx(at)
    assert good(harness.client.get(f"/api/v1/runs/{run.spec.id}/overview"))["run"]["silent_since"] == pytest.approx(at)
    run.end(1, LegEnd.TIME_LIMIT)
    look(harness)
    heard(3600)
    assert row(harness)["silent_since"] is None


def test_a_row_of_a_run_that_failed_has_its_cause_and_the_way_on(harness: Harness) -> None:
    run = harness.sandbox.play().begin(1)
    run.end(1, LegEnd.CANCELLED)
    look(harness)
    fields = row(harness)
    assert (fields["state"], fields["why"]) == ("cancelled", "leg 1 was cancelled: as the test says")
    assert "onward resume" in fields["next"]
    assert fields["legs"]["done"] == 1


def test_a_run_that_waits_says_what_the_scheduler_says_once_it_was_asked(harness: Harness) -> None:
    run = harness.sandbox.play()
    look(harness)
    assert row(harness)["why"] == "leg 1 was submitted"
    run.later(120)
    assert row(harness)["queue_wait_s"] == pytest.approx(120, abs=1)
    before = harness.server.services.tracker.version()
    tend_runs(harness.server.services)
    assert row(harness)["why"] == "leg 1 is queued"
    after = harness.server.services.tracker.version()
    assert after > before  # so that listeners hear of it
    tend_runs(harness.server.services)
    assert harness.server.services.tracker.version() == after


def test_a_run_that_others_execute_has_the_same_columns(harness: Harness) -> None:
    harness.run(name="mine")
    fields = row(harness)
    assert fields["why"] == "its script records it"
    assert fields["legs"] == {"now": 1, "done": 0, "max": None}
    assert (fields["checkpoint"], fields["queue_wait_s"], fields["gpu_use"]) == (None, None, None)
    for state, why in (("finished", "its script recorded its end"), ("failed", "its script set it to failed without a reason")):
        good(harness.client.ask("PATCH", f"/api/v1/runs/{fields['id']}", json={"state": state}))
        assert row(harness)["why"] == why
    good(harness.client.ask("PATCH", f"/api/v1/runs/{fields['id']}", json={"state": "failed", "reason": "no luck"}))
    fields = row(harness)
    assert (fields["why"], fields["legs"]["done"]) == ("no luck", 1)
    assert good(harness.client.get(f"/api/v1/runs/{fields['id']}"))["why"] == "no luck"


def test_metrics_are_all_none_or_those_that_are_named(harness: Harness) -> None:
    run = harness.run()
    harness.log(run, "loss", [1.0])
    harness.log(run, "val/acc", [0.5])
    for asked, names in (
        ("true", ["loss", "val/acc"]),
        ("false", []),
        ("", []),
        ("val/acc,none", ["val/acc"]),
        ("loss,val/acc", ["loss", "val/acc"]),
    ):
        assert list(row(harness, f"metrics={quote(asked)}")["metrics"]) == names
    found = good(harness.client.post("/api/v1/runs/search", {"metrics": ["loss"]}))["runs"]
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
def test_words_that_are_no_filter_are_searched_for_and_the_answer_says_so(harness: Harness, words: str, found: list[str]) -> None:
    harness.run(name="Resnet 50", experiment="ImageNet")
    harness.run(name="vit", experiment="ImageNet", tags={"owner": "Team-X", "done": "100%"})
    answer = good(harness.client.get(f"/api/v1/runs?filter={quote(words)}&count=true"))
    assert sorted(run["name"] for run in answer["runs"]) == found
    assert (answer["read_as"], answer["total"]) == ("text", len(found))
    assert answer["note"].startswith("searched for as words: filter, at ")


def test_a_filter_with_a_slip_in_it_is_told_and_not_searched_for(harness: Harness) -> None:
    harness.run(name="loss < oops")
    assert "expected a value" in good(harness.client.get("/api/v1/runs?filter=metrics.loss%20%3C"), 400)["detail"]
    answer = good(harness.client.get("/api/v1/runs?filter=state%20%3D%20running"))
    assert (answer["read_as"], answer["note"], len(answer["runs"])) == ("filter", "", 1)
    assert len(good(harness.client.post("/api/v1/runs/search", {"text": "oops"}))["runs"]) == 1


def test_a_run_that_is_resumed_waits_from_then_on(harness: Harness) -> None:
    run = harness.sandbox.play().later(30).begin(1).later(300)
    run.end(1, LegEnd.TIME_LIMIT)
    run.later(40)
    look(harness)
    fields = row(harness)
    assert fields["state"] == "waiting"
    assert fields["queue_wait_s"] == pytest.approx(41, abs=2)  # since leg 1 ended, not since its successor was queued
    run.write(ev.Refused(leg=2, at=run.now(), name=next(iter(run.leg(2).submissions)), reason="no such queue"))
    look(harness)
    assert "no such queue" in row(harness)["why"]
    assert "other resources" in row(harness)["next"]
