"""Pipelines over HTTP: how they stand and why, the table of their benchmarks, a cancel, and once more what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner
from onward.model.pipelines.plan import PipelinePlan, plan_to_json
from onward.model.pipelines.score import Score, TaskResult
from onward.model.pipelines.task import tasks_of
from onward.pipelines.advance import gather_facts, read_plan
from onward.rundir.journal import read_spec
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import end_attempt, task_dir, write_result
from onward.tracker.access.tokens import Rights, Scope
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good
from tests.unit.test_pipeline_goes_on import Piped, plan

AT = "/api/v1/pipelines"
NAME = "2026-11-15_A_digits"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


@pytest.fixture
def piped(harness: Harness) -> Piped:
    """Its training is under way; of its first checkpoint's two shards one is measured and one failed, and nobody has looked since."""
    piped = Piped(harness.sandbox, plan())
    piped.go_on()
    piped.end("prepare")
    piped.go_on()
    piped.publish(100)
    piped.go_on()
    first, second = tasks_of(read_plan(piped.dir), gather_facts(piped.dir, read_plan(piped.dir)).checkpoints)
    for task in (first, second):
        task_dir(piped.dir, task).path.mkdir()
    write_result(task_dir(piped.dir, first), TaskResult(scores={"score": Score(value=0.75, count=4, spread=0.5)}, items=4, seconds=2.0))
    for number in (1, 2):
        task_dir(piped.dir, second).claim(number).write_text('{"run": "gone", "leg": 1}')
        owner = AttemptOwner(run="gone", leg=1)
        ended = Attempt(number=number, owner=owner, host="n", at=0.0, end=AttemptEnd.FAILED, reason="exit code 3", evidence="no sums")
        end_attempt(task_dir(piped.dir, second), ended)
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    return piped


def bare(harness: Harness, name: str, made: PipelinePlan | None = None) -> PipelineDir:
    """A pipeline of nothing at all."""
    dir = PipelineDir(harness.sandbox.root / name)
    dir.make()
    dir.plan.write_text(json.dumps(plan_to_json(made or PipelinePlan(name="x", experiment="x", cluster="local"))))
    return dir


def test_they_are_listed_newest_first_in_pages_and_runs_are_none(harness: Harness, piped: Piped) -> None:
    for letter in ("B", "Z", "AA"):
        bare(harness, f"2026-11-15_{letter}_x")
    (harness.sandbox.root / "2026-11-16_A_broken" / "params").mkdir(parents=True)
    (harness.sandbox.root / "2026-11-16_A_broken" / "params" / "plan.json").write_text("{")
    answer = good(harness.client.get(AT))
    assert [one["id"].split("_")[1] for one in answer["pipelines"]] == ["AA", "Z", "B", "A"]
    assert "2026-11-16_A_broken cannot be read as a pipeline" in answer["problems"][0]
    first = good(harness.client.get(f"{AT}?limit=3"))
    assert [one["id"] for one in good(harness.client.get(f"{AT}?before={first['next']}"))["pipelines"]] == ["2026-11-15_B_x", NAME]
    (one,) = good(harness.client.get(f"{AT}?text=DIGITS"))["pipelines"]
    assert (one["name"], one["state"], one["stages_done"], one["stages_all"], one["workers_live"]) == ("digits", "running", 1, 2, 2)
    assert one["tasks"] == {"open": 0, "claimed": 0, "done": 1, "failed": 1}


def test_those_that_are_named_are_told_and_names_that_mean_nothing_are_left_out(harness: Harness, piped: Piped) -> None:
    bare(harness, "2026-11-15_B_x")
    answer = good(harness.client.get(f"{AT}?name={NAME}&name=2026-11-15_C_gone&name=..%2Fsecret"))
    assert ([one["id"] for one in answer["pipelines"]], answer["next"], answer["problems"]) == ([NAME], None, [])


def test_in_the_list_of_runs_a_pipeline_is_one_row_with_its_runs_counted(harness: Harness, piped: Piped) -> None:
    runs = good(harness.client.get("/api/v1/runs"))["runs"]
    assert len(runs) > 2
    assert {run["pipeline"]["id"] for run in runs} == {NAME} and {run["pipeline"]["states"] is None for run in runs} == {True}
    [row] = good(harness.client.get("/api/v1/runs?fold=true&count=true"))["runs"]
    assert sum(row["pipeline"]["states"].values()) == len(runs)
    inner = {"filter": f"pipeline = '{row['pipeline']['folder']}'", "count": True}
    assert good(harness.client.post("/api/v1/runs/search", inner))["total"] == len(runs)


def test_a_line_follows_a_pipeline_that_ends_and_goes_on(harness: Harness, piped: Piped) -> None:
    def state() -> str:
        return str(good(harness.client.get(AT))["pipelines"][0]["state"])

    assert state() == "running"
    piped.end("train", "failed", "no more memory")
    for worker in piped.dir.workers():
        worker.done.write_text(json.dumps({"state": "finished", "cause": "", "leg": 1, "at": 0}))
    piped.go_on()
    assert (state(), state()) == ("failed", "failed")
    piped.dir.over.unlink()
    assert state() == "running"


def test_one_tells_its_stages_its_workers_what_failed_and_the_table(harness: Harness, piped: Piped) -> None:
    asked = harness.sandbox.scheduler.asked
    answer = good(harness.client.get(f"{AT}/{NAME}"))
    assert harness.sandbox.scheduler.asked == asked  # looking asks no scheduler
    prepare, train = answer["stages"]
    assert (prepare["state"], prepare["run_state"], prepare["progress"]) == ("finished", "finished", None)
    assert (train["state"], train["run"], train["needs"]) == ("live", read_spec(piped.dir.member("train")).id, ["prepare"])
    assert train["why"] and train["why"] == good(harness.client.get(f"/api/v1/runs/{train['run']}"))["why"]
    assert [(one["number"], one["state"]) for one in answer["workers"]] == [(1, "queued"), (2, "queued")]
    assert answer["checkpoints"] == {"train": [100]} and answer["benchmarks"] == [{"name": "sums", "of": ["train"]}]
    (failed,) = answer["failed_tasks"]
    assert (failed["of"], failed["step"], failed["benchmark"], failed["shard"], failed["reason"], failed["evidence"]) == (
        *("train", 100, "sums", 1),
        *("exit code 3 (2 times)", "no sums"),
    )
    (row,) = answer["summary"]["rows"]
    cell = row["cells"]["sums"]
    assert (row["label"], cell["done"], cell["tasks"], cell["failed"], cell["mean"], cell["best"]) == (
        "train, step 100",
        1,
        2,
        1,
        0.75,
        False,
    )
    assert cell["text"].startswith("0.75 ± 0.8")
    assert harness.client.get(f"{AT}/{NAME}?baseline=moon").status == 400
    assert good(harness.client.get(f"{AT}/{NAME}?baseline=train"))["summary"]["baseline"] == "train@100"


def test_a_stage_that_was_skipped_leads_to_who_did_it(harness: Harness, piped: Piped) -> None:
    by = piped.dir.member("prepare")
    made = plan()
    stages = tuple(replace(stage, done_by=str(by.path)) if stage.name == "prepare" else stage for stage in made.stages)
    again = Piped.__new__(Piped)
    again.sandbox, again.dir = harness.sandbox, PipelineDir(harness.sandbox.root / "2026-11-15_B_digits")
    again.dir.make()
    again._hold(made.stages[1].draft, "train", again.dir.member("train").path)
    again.dir.plan.write_text(json.dumps(plan_to_json(replace(made, stages=stages))))
    skipped, held = good(harness.client.get(f"{AT}/2026-11-15_B_digits"))["stages"]
    assert (skipped["skipped"], skipped["run"], skipped["done_by"]) == (True, None, read_spec(by).id)
    assert skipped["why"] == f"unchanged: {by.path.name} did it"
    assert (held["state"], held["why"], held["blocked"]) == ("held", "is about to be queued", False)


def test_only_the_whole_name_of_a_pipeline_under_a_root_leads_to_one(harness: Harness, tmp_path: Path) -> None:
    bare(harness, NAME)
    (harness.sandbox.root / f"{NAME}-train").mkdir()
    outside = bare(harness, "2026-11-15_D_x").path.rename(tmp_path / "2026-11-15_D_x")
    (harness.sandbox.root / "2026-11-15_C_x").symlink_to(outside)
    names = ("2026-11-15_B_digits", f"{NAME}-train", "2026-11-15_A_di", "digits", "2026-11-15_C_x")
    for name in (*names, "..", "%2e%2e", f"..%2f{outside.name}", f"2026-11-15_D_..%2f..%2f{outside.name}", f"{NAME}%00", f"{NAME}%0a"):
        for answer in (harness.client.get(f"{AT}/{name}"), *(harness.client.post(f"{AT}/{name}/{act}") for act in ("cancel", "rerun"))):
            assert answer.status in (400, 404) and answer.json["detail"], name
    assert not (outside / "params" / "cancelled.json").exists()
    assert [one["id"] for one in good(harness.client.get(AT))["pipelines"]] == [NAME]


def test_a_cancel_ends_what_runs_and_a_rerun_goes_on_with_what_failed(harness: Harness, piped: Piped) -> None:
    reader = harness.as_(Scope.USER, rights=Rights.READ)
    assert reader.get(f"{AT}/{NAME}").status == 200
    assert [reader.post(f"{AT}/{NAME}/{act}").status for act in ("cancel", "rerun")] == [403, 403]
    assert harness.as_(Scope.RUN, run=read_spec(piped.dir.member("train")).id).get(f"{AT}/{NAME}").status == 403
    answer = good(harness.client.post(f"{AT}/{NAME}/cancel"))
    assert answer["state"] == "cancelled" and answer["cause"].startswith("cancelled by ")
    assert [one["state"] for one in answer["stages"]] == ["finished", "cancelled"] and answer["workers_live"] == 0
    assert "is already over" in good(harness.client.post(f"{AT}/{NAME}/cancel"), 409)["detail"]
    answer = good(harness.client.post(f"{AT}/{NAME}/rerun"))
    assert (answer["state"], answer["stages"][1]["state"], answer["failed_tasks"]) == ("running", "live", [])
    assert answer["tasks"] == {"open": 1, "claimed": 0, "done": 1, "failed": 0}


def test_where_nothing_failed_there_is_nothing_to_do_again(harness: Harness) -> None:
    bare(harness, NAME).over.write_text(json.dumps({"state": "finished", "cause": "all stages are done", "at": 5.0}))
    assert "nothing of 2026-11-15_A_digits has failed" in good(harness.client.post(f"{AT}/{NAME}/rerun"), 409)["detail"]
    assert good(harness.client.get(f"{AT}/{NAME}"))["ended"] == 5.0
