"""`onward runs` shows a pipeline as one line, however many runs it has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.model.pipelines.plan import PipelinePlan, Stage, StageKind
from onward.model.spec import RunDraft
from onward.operations.hosts.local import LocalHost
from onward.operations.pipelines.start import start_pipeline
from onward.operations.runs.folded import fold_runs
from onward.rundir.pipeline.layout import PipelineDir
from tests.benches import end_local_queue
from tests.sandbox import Sandbox

DRAFT = RunDraft(name="digits", experiment="digits", cluster="local", command=("true",))


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path)
    yield sandbox
    end_local_queue(sandbox.root.parent / "state")


def pipeline(sandbox: Sandbox, *, stages: int) -> PipelineDir:
    names = [f"part-{number}" for number in range(stages)]
    made = tuple(Stage(name=name, kind=StageKind.STAGE, draft=DRAFT) for name in names)
    plan = PipelinePlan(name="piped", experiment="digits", cluster="local", stages=made)
    return start_pipeline(sandbox.context, plan, source="stages: {}", cwd=sandbox.project)


def test_the_runs_of_a_pipeline_are_one_line_beside_those_that_stand_alone(sandbox: Sandbox) -> None:
    alone, piped = sandbox.play("alone"), pipeline(sandbox, stages=3)
    records = LocalHost(sandbox.context).runs(state=None, newest=30, fold=True)
    assert [run["id"] for run in records.runs] == [alone.spec.id]
    [line] = records.pipelines
    assert (line["folder"], line["stages_all"], line["state"]) == (str(piped.path), 3, "running")
    assert (records.older, records.broken) == (0, ())


def test_the_line_says_how_far_the_pipeline_is_and_what_shows_its_runs(sandbox: Sandbox) -> None:
    alone, piped = sandbox.play("alone"), pipeline(sandbox, stages=3)
    listed = onward_runs(sandbox)
    assert [line.split()[:2] for line in listed[1:]] == [[alone.spec.id, "alone"], ["pipeline", piped.path.name]]
    assert "0/3 stages" in listed[2] and f"onward pipeline show {piped.path.name}" in listed[2]
    assert len(onward_runs(sandbox, "--all")) == 1 + 4


def onward_runs(sandbox: Sandbox, *flags: str) -> list[str]:
    env = {**os.environ, "ONWARD_ROOT": str(sandbox.root), "ONWARD_STATE_DIR": str(sandbox.root.parent / "state")}
    command = [sys.executable, "-m", "onward", "runs", *flags]
    done = subprocess.run(command, cwd=sandbox.project, env=env, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_unfolded_each_run_is_there(sandbox: Sandbox) -> None:
    sandbox.play("alone")
    pipeline(sandbox, stages=3)
    records = LocalHost(sandbox.context).runs(state=None, newest=None)
    assert len(records.runs) == 4 and records.pipelines == ()


def test_a_large_pipeline_leaves_room_for_what_is_older_than_it(sandbox: Sandbox) -> None:
    alone = sandbox.play("alone")
    piped = pipeline(sandbox, stages=8)
    folded = fold_runs(sandbox.context.runs(), newest=2)
    assert ([dir.path for dir in folded.runs], folded.pipelines, folded.older) == ([alone.dir.path], [piped], 0)


def test_of_a_very_large_pipeline_not_every_folder_is_looked_into(sandbox: Sandbox) -> None:
    sandbox.play("alone")
    pipeline(sandbox, stages=30)
    folded = fold_runs(sandbox.context.runs(), newest=1)
    assert (len(folded.runs), len(folded.pipelines)) == (0, 1)
    assert folded.older == 30
    assert fold_runs(sandbox.context.runs()[:0], newest=1).older == 0


def test_runs_whose_pipeline_is_gone_are_listed_by_themselves(sandbox: Sandbox) -> None:
    piped = pipeline(sandbox, stages=2)
    shutil.rmtree(piped.path)
    folded = fold_runs(sandbox.context.runs(), newest=30)
    assert (len(folded.runs), folded.pipelines) == (2, [])


def test_a_run_that_cannot_be_read_is_not_folded_away(sandbox: Sandbox) -> None:
    broken = sandbox.play("broken")
    broken.dir.spec.write_text("{")
    assert [dir.path for dir in fold_runs(sandbox.context.runs(), newest=30).runs] == [broken.dir.path]
