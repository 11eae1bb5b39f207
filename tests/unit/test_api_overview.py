"""A run's first page and its timeline: the same facts from its folder, from what was pushed, and of runs that others execute."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.model import events as ev
from onward.model.run import LegEnd
from onward.model.spec import BestRule, CheckpointRule, Resources, spec_to_json
from onward.operations.runs.record import inspect_run, run_record
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def look_at_folders(harness: Harness) -> None:
    assert harness.server.services.tracker.files.look(harness.sandbox.context.roots).problems == []


def test_the_first_page_has_the_facts_that_show_has_without_a_server(harness: Harness) -> None:
    rule = CheckpointRule(best=BestRule(metric="score"))
    run = harness.sandbox.play(checkpoints=rule, resources=Resources(time=3600), params={"lr": 0.1}).later(60).begin(1)
    run.later(100).publish(1, 20)
    metrics = [{"s": s, "t": run.now() + s, "m": {"a/b": 1.0, "score": 0.5, "loss": 2.0}} for s in range(30)]
    run.log(1, {"kind": "init", "total": 100, "t": run.now()}, *metrics)
    run.later(50)
    look_at_folders(harness)
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/overview"))
    same = run_record(inspect_run(harness.sandbox.context, run.dir))
    assert {name: answer[name] for name in ("effort", "risk", "finish")} == {name: same[name] for name in ("effort", "risk", "finish")}
    assert answer["risk"]["since_step"] == 20
    assert answer["risk"]["steps"] == 9
    assert answer["pace"]["fraction"] == 0.3
    assert answer["pace"]["rate"] == pytest.approx(1.0)
    assert answer["finish"]["training"] == pytest.approx(70)
    assert [metric["key"] for metric in answer["metrics"]] == ["score", "loss", "a/b"]
    assert answer["run"]["why"] == same["reason"]
    assert answer["command"] == "python train.py"
    assert answer["resources"]["time"] == 3600
    assert "mem" not in answer["resources"]
    assert answer["actions"] == {"stop": True, "cancel": True, "resume": False, "resume_advised": False, "clone": True}
    assert (answer["jobs"][0]["leg"], answer["jobs"][0]["nodes"], answer["jobs"][0]["gpus"]) == (1, ["node1"], ["0"])
    assert answer["folder"] == str(run.dir.path)


def test_a_run_whose_code_crashed_shows_evidence_and_can_but_need_not_be_resumed(harness: Harness) -> None:
    run = harness.sandbox.play(limits=harness.sandbox.draft().limits).begin(1)
    run.write(ev.Ended(leg=1, at=run.now(), end=LegEnd.CRASHED, reason="exit code 1", evidence="Traceback\nValueError: x"))
    run.write(ev.Closed(leg=1, at=run.now(), state="failed", cause="leg 1 crashed", evidence="Traceback\nValueError: x", next="mend it"))
    look_at_folders(harness)
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/overview"))
    assert answer["evidence"] == ["Traceback", "ValueError: x"]
    assert (answer["run"]["why"], answer["run"]["next"]) == ("leg 1 crashed", "mend it")
    assert (answer["risk"], answer["finish"]) == (None, None)
    assert answer["actions"] == {"stop": False, "cancel": False, "resume": True, "resume_advised": False, "clone": True}


def test_resume_is_advised_where_a_limit_and_not_the_code_ended_the_run(harness: Harness) -> None:
    run = harness.sandbox.play().begin(1)
    run.end(1, LegEnd.OUT_OF_MEMORY)
    run.write(ev.Closed(leg=1, at=run.now(), state="failed", cause="leg 1 ran out of memory", next="onward resume it --mem 8G"))
    look_at_folders(harness)
    assert good(harness.client.get(f"/api/v1/runs/{run.spec.id}/overview"))["actions"]["resume_advised"] is True


def test_params_are_compared_with_the_run_that_it_was_cloned_from(harness: Harness) -> None:
    first = harness.sandbox.submit(params={"lr": 0.1, "seed": 1})
    look_at_folders(harness)
    parent = good(harness.client.get("/api/v1/runs"))["runs"][0]["id"]
    made = good(harness.client.post(f"/api/v1/runs/{parent}/clone", {"params": {"lr": 0.2}}), 201)
    answer = good(harness.client.get(f"/api/v1/runs/{made['id']}/overview"))
    assert answer["parent"] == {"id": parent, "name": "digits", "different": {"lr": ["0.1", "0.2"]}}
    assert good(harness.client.get(f"/api/v1/runs/{parent}/overview"))["parent"] is None
    assert first.is_run()


def test_a_run_that_a_request_asked_for_says_which(harness: Harness) -> None:
    run, other = (harness.sandbox.play(name, request=request) for name, request in (("asked", "page-17"), ("by-hand", None)))
    look_at_folders(harness)
    answer = [good(harness.client.get(f"/api/v1/runs/{one.spec.id}/overview"))["request"] for one in (run, other)]
    assert answer == ["page-17", None]


def test_a_run_of_others_has_a_first_page_and_a_timeline_too(harness: Harness) -> None:
    tags = {"mlflow.parentRunId": "nobody", "mlflow.source.name": "train.py", "mlflow.source.git.commit": "abc"}
    run = harness.run(tags=tags)
    harness.log(run, "loss", [3.0, 2.0, "NaN"])
    answer = good(harness.client.get(f"/api/v1/runs/{run}/overview"))
    assert (answer["command"], answer["code"]) == ("train.py", {"git_commit": "abc"})
    assert answer["parent"] == {"id": "nobody", "name": "", "different": {}}
    assert answer["metrics"][0]["value"] == "NaN"
    assert answer["pace"]["rate"] == pytest.approx(1.0)
    assert answer["actions"] == {"stop": False, "cancel": False, "resume": False, "resume_advised": False, "clone": False}
    line = good(harness.client.get(f"/api/v1/runs/{run}/timeline"))
    assert [(s["kind"], s["leg"], s["state"], s["end"]) for s in line["segments"]] == [("leg", 1, "running", None)]
    good(harness.client.ask("PATCH", f"/api/v1/runs/{run}", json={"state": "failed", "reason": "no luck"}))
    line = good(harness.client.get(f"/api/v1/runs/{run}/timeline"))
    assert line["marks"][-1]["kind"] == "closed"
    assert line["marks"][-1]["words"] == "failed: no luck"


def test_a_timeline_is_the_same_from_the_folder_and_from_what_was_pushed(harness: Harness, tmp_path: Path) -> None:
    run = harness.sandbox.play().later(60).begin(1).later(100).publish(1, 9).later(10)
    run.end(1, LegEnd.TIME_LIMIT)
    run.later(30).begin(2)
    look_at_folders(harness)
    id = run.spec.id
    seen = good(harness.client.get(f"/api/v1/runs/{id}/timeline"))
    kinds = [(segment["kind"], segment["leg"]) for segment in seen["segments"]]
    assert kinds[:2] == [("queue", 1), ("leg", 1)]
    assert ("queue", 2) in kinds
    assert ("sync", 1) in kinds
    assert seen["segments"][1]["log"] == {"leg": 1, "stream": "out"}
    tracker = harness.server.services.tracker
    tracker.runs.delete(id)
    tracker.push.announce(spec_to_json(run.spec))
    for path in sorted(run.dir.journals.iterdir()):
        tracker.push.piece(id, f"journal/{path.name}", 0, path.read_bytes())
    shutil.rmtree(run.dir.path)
    again = good(harness.client.get(f"/api/v1/runs/{id}/timeline"))
    assert again == seen
    assert good(harness.client.get(f"/api/v1/runs/{id}/overview"))["actions"]["clone"] is False


def test_a_folder_that_cannot_be_read_now_leaves_what_was_read_of_it(harness: Harness) -> None:
    run = harness.sandbox.play().begin(1)
    look_at_folders(harness)
    id = run.spec.id
    run.dir.spec.write_text("{torn")
    line = good(harness.client.get(f"/api/v1/runs/{id}/timeline"))
    assert ("leg", 1) in [(segment["kind"], segment["leg"]) for segment in line["segments"]]
    assert json.dumps(good(harness.client.get(f"/api/v1/runs/{id}/overview"))["jobs"])


def test_a_run_that_waits_tells_when_its_scheduler_expects_to_start_it(harness: Harness) -> None:
    run = harness.sandbox.play()
    look_at_folders(harness)
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/start"))
    assert (answer["waiting"], answer["leg"], answer["job"], answer["queue"]) == (True, 1, run.job(1), "all")
    assert answer["taken_at"] == run.now()
    run.begin(1)
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/start"))
    assert (answer["waiting"], answer["leg"], answer["taken_at"]) == (False, None, None)
    assert good(harness.client.get(f"/api/v1/runs/{harness.run()}/start"))["waiting"] is False


def test_a_job_that_the_scheduler_does_not_list_is_told(harness: Harness) -> None:
    run = harness.sandbox.play()
    look_at_folders(harness)
    harness.sandbox.scheduler.end(run.job(1))
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/start"))
    assert (answer["waiting"], answer["reason"]) == (True, "the scheduler's list does not have its job")


def test_a_run_that_is_not_there_has_no_first_page(harness: Harness) -> None:
    for page in ("overview", "timeline", "start"):
        assert good(harness.client.get(f"/api/v1/runs/nobody/{page}"), 404)["detail"] == "there is no run 'nobody'"
