"""Runs that are part of a pipeline: made whole, and left alone until their turn."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from onward.errors import StorageError
from onward.model.spec import PipelineMembership, spec_from_json, spec_to_json
from onward.operations.repair.killed_submits import sweep_killed_submits
from onward.operations.repair.one_run import GRACE
from onward.operations.repair.tend import tend
from onward.operations.runs.record import inspect_run, reason
from onward.operations.submit.new_run import make_held_run
from onward.rundir.journal import read_run, read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir, pipelines_under
from tests.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def pipeline(sandbox: Sandbox) -> PipelineDir:
    dir = PipelineDir(sandbox.root / "2026-11-15_A_digits")
    dir.make()
    dir.plan.write_text("{}")
    return dir


def held(sandbox: Sandbox, pipeline: PipelineDir, stage: str = "train") -> RunDir:
    member = PipelineMembership(pipeline=str(pipeline.path), stage=stage)
    return make_held_run(sandbox.context, sandbox.draft(), cwd=sandbox.project, folder=pipeline.member(stage).path, member=member)


def test_a_held_run_is_whole_and_has_no_job(sandbox: Sandbox, pipeline: PipelineDir) -> None:
    dir = held(sandbox, pipeline)
    assert dir.path.name == "2026-11-15_A_digits-train"
    assert read_spec(dir).member == PipelineMembership(pipeline=str(pipeline.path), stage="train")
    assert read_spec(dir).workdir == str(sandbox.project)
    assert dir.supervisor.is_file() and dir.environment.stat().st_mode & 0o777 == 0o600
    assert read_run(dir).legs == {} and not sandbox.scheduler.jobs


def test_a_member_survives_the_way_through_json(sandbox: Sandbox, pipeline: PipelineDir) -> None:
    spec = read_spec(held(sandbox, pipeline))
    assert spec_from_json(spec_to_json(spec)) == spec


def test_a_held_run_says_that_it_waits_for_its_turn(sandbox: Sandbox, pipeline: PipelineDir) -> None:
    assert reason(inspect_run(sandbox.context, held(sandbox, pipeline))) == "it waits for its turn in its pipeline"


def test_tend_queues_no_run_whose_turn_has_not_come(sandbox: Sandbox, pipeline: PipelineDir) -> None:
    dir = held(sandbox, pipeline)
    sandbox.clock.sleep(GRACE + 1)
    tended = tend(sandbox.context)
    assert tended.looked_at == 0 and not sandbox.scheduler.jobs
    assert "cannot be read as a pipeline" in tended.problems[0]  # its plan is empty, and keeps nothing else from being tended
    dir.held.unlink()
    tend(sandbox.context)
    assert [job.status.name.split(".")[0] for job in sandbox.scheduler.jobs.values()] == ["digits"]


def test_a_folder_that_is_there_already_is_not_taken_for_a_member(sandbox: Sandbox, pipeline: PipelineDir) -> None:
    held(sandbox, pipeline)
    with pytest.raises(StorageError, match="already exists"):
        held(sandbox, pipeline)
    assert pipeline.member("train").is_run()


def test_a_pipeline_is_no_leftover_of_a_submit(sandbox: Sandbox, pipeline: PipelineDir, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert sweep_killed_submits(sandbox.root) == []
    os.unlink(pipeline.plan)
    assert "removed" in sweep_killed_submits(sandbox.root)[0]


def test_pipelines_are_found_beside_runs(sandbox: Sandbox, pipeline: PipelineDir) -> None:
    held(sandbox, pipeline)
    sandbox.submit()
    assert pipelines_under(sandbox.root) == [pipeline]
    assert pipelines_under(sandbox.root / "nowhere") == []
    assert [run.path.name for run in sandbox.context.runs()] == ["2026-11-15_A_digits-train", "2026-11-15_B_digits"]
