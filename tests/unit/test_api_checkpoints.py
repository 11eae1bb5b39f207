"""Checkpoints over HTTP: the ledger with why each is kept, and runs branched from one; the log and the diff beside them, as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.restoring.newest import restore_newest
from onward.model.checkpoint import CheckpointName
from onward.operations.submit.new_run import submit
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def saved(harness: Harness, *steps: int) -> tuple[str, RunDir]:
    """A run with these checkpoints of its first leg."""
    draft = harness.sandbox.draft(command=("python3", "train.py"), params={"lr": 0.1})
    dir = submit(harness.sandbox.context, draft, cwd=harness.sandbox.project)
    for step in steps:
        state = harness.sandbox.folder / f"state-{step}"
        state.write_text(f"weights of step {step}")
        publish({"deep/state": state}, dir.checkpoints, CheckpointName(1, step), created=1000.0 + step, metrics={"loss": 1 / step})
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    return read_run(dir).spec.id, dir


def dir_of(harness: Harness, run: str) -> RunDir:
    return next(dir for dir in harness.sandbox.context.runs() if read_run(dir).spec.id == run)


def test_the_ledger_says_where_each_lies_and_why_it_is_kept(harness: Harness) -> None:
    run, dir = saved(harness, 10, 20, 30, 40)
    (dir.checkpoints / "leg-0001.step-00000020" / "deep" / "state").write_text("cut")
    answer = {one["step"]: one for one in good(harness.client.get(f"/api/v1/runs/{run}/checkpoints"))["checkpoints"]}
    assert answer[40]["kept"] == "the newest"
    assert answer[30]["kept"] == "one of the last 3"
    assert answer[40]["folder"] == str(dir.checkpoints / "leg-0001.step-00000040")
    assert (answer[20]["state"], answer[20]["kept"]) == ("damaged", "")
    assert "deep/state" in answer[20]["problem"]


def test_a_branch_begins_with_a_copy_of_the_checkpoint(harness: Harness, tmp_path: Path) -> None:
    run, dir = saved(harness, 10, 20)
    asked = {"checkpoint": {"leg": 1, "step": 10}, "params": {"lr": 0.5}, "name": "branch"}
    made = dir_of(harness, good(harness.client.post(f"/api/v1/runs/{run}/clone", asked), 201)["id"])
    found = restore_newest(made.checkpoints, tmp_path / "node")
    assert found is not None
    assert (str(found.manifest.name), dict(found.manifest.metrics)) == ("leg-0000.step-00000010", {"loss": 0.1})
    assert (tmp_path / "node" / "deep" / "state").read_text() == "weights of step 10"
    assert read_run(made).spec.parent == run
    assert (dir.checkpoints / "leg-0001.step-00000010").is_dir()


def test_a_damaged_checkpoint_begins_nothing_and_nothing_stays_behind(harness: Harness) -> None:
    run, dir = saved(harness, 10)
    (dir.checkpoints / "leg-0001.step-00000010" / "deep" / "state").write_text("weights of step 99")  # as long as it was
    before = harness.sandbox.folders()
    answer = harness.client.post(f"/api/v1/runs/{run}/clone", {"checkpoint": {"leg": 1, "step": 10}})
    assert answer.status >= 400
    assert "leg-0001.step-00000010" in answer.json["detail"]
    assert harness.sandbox.folders() == before


def test_a_checkpoint_that_is_gone_is_not_found(harness: Harness) -> None:
    run, _ = saved(harness, 10)
    answer = harness.client.post(f"/api/v1/runs/{run}/clone", {"checkpoint": {"leg": 2, "step": 10}})
    assert answer.status == 404
    assert "onward checkpoints" in answer.json["hint"]


def test_a_log_comes_whole_as_a_file(harness: Harness) -> None:
    run, dir = saved(harness)
    dir.log(1, "err").write_bytes(b"\x1b[31mbad\x1b[0m \xff\n" * 100_000)
    answer = harness.client.get(f"/api/v1/runs/{run}/logs/1/err/file")
    assert answer.status == 200
    assert answer.body == dir.log(1, "err").read_bytes()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert harness.client.get(f"/api/v1/runs/{run}/logs/2/err/file").status == 404


def test_what_was_not_committed_comes_as_a_file(harness: Harness) -> None:
    run, dir = saved(harness)
    assert harness.client.get(f"/api/v1/runs/{run}/code-diff").status == 404
    dir.code_diff.write_text("-old\n+new\n")
    assert harness.client.get(f"/api/v1/runs/{run}/code-diff").text == "-old\n+new\n"
    assert json.loads(harness.client.get("/api/v1/runs/nosuchrn/code-diff").text)["status"] == 404
