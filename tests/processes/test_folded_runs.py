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
from tests.desks import Place

DRAFT = RunDraft(name="digits", experiment="digits", cluster="local", command=("true",))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    end_local_queue(place.root.parent / "state")


def pipeline(place: Place, *, stages: int) -> PipelineDir:
    names = [f"part-{number}" for number in range(stages)]
    made = tuple(Stage(name=name, kind=StageKind.STAGE, draft=DRAFT) for name in names)
    plan = PipelinePlan(name="piped", experiment="digits", cluster="local", stages=made)
    return start_pipeline(place.desk, plan, source="stages: {}", cwd=place.project)


def test_the_runs_of_a_pipeline_are_one_line_beside_those_that_stand_alone(place: Place) -> None:
    alone, piped = place.play("alone"), pipeline(place, stages=3)
    told = LocalHost(place.desk).runs(state=None, newest=30, fold=True)
    assert [run["id"] for run in told.runs] == [alone.spec.id]
    [line] = told.pipelines
    assert (line["folder"], line["stages_all"], line["state"]) == (str(piped.path), 3, "running")
    assert (told.older, told.broken) == (0, ())


def test_the_line_says_how_far_the_pipeline_is_and_what_shows_its_runs(place: Place) -> None:
    alone, piped = place.play("alone"), pipeline(place, stages=3)
    listed = onward_runs(place)
    assert [line.split()[:2] for line in listed[1:]] == [[alone.spec.id, "alone"], ["pipeline", piped.path.name]]
    assert "0/3 stages" in listed[2] and f"onward pipeline show {piped.path.name}" in listed[2]
    assert len(onward_runs(place, "--all")) == 1 + 4


def onward_runs(place: Place, *flags: str) -> list[str]:
    env = {**os.environ, "ONWARD_ROOT": str(place.root), "ONWARD_STATE_DIR": str(place.root.parent / "state")}
    command = [sys.executable, "-m", "onward", "runs", *flags]
    done = subprocess.run(command, cwd=place.project, env=env, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_unfolded_each_run_is_there(place: Place) -> None:
    place.play("alone")
    pipeline(place, stages=3)
    told = LocalHost(place.desk).runs(state=None, newest=None)
    assert len(told.runs) == 4 and told.pipelines == ()


def test_a_large_pipeline_leaves_room_for_what_is_older_than_it(place: Place) -> None:
    alone = place.play("alone")
    piped = pipeline(place, stages=8)
    folded = fold_runs(place.desk.runs(), newest=2)
    assert ([dir.path for dir in folded.runs], folded.pipelines, folded.older) == ([alone.dir.path], [piped], 0)


def test_of_a_very_large_pipeline_not_every_folder_is_looked_into(place: Place) -> None:
    place.play("alone")
    pipeline(place, stages=30)
    folded = fold_runs(place.desk.runs(), newest=1)
    assert (len(folded.runs), len(folded.pipelines)) == (0, 1)
    assert folded.older == 30
    assert fold_runs(place.desk.runs()[:0], newest=1).older == 0


def test_runs_whose_pipeline_is_gone_are_listed_by_themselves(place: Place) -> None:
    piped = pipeline(place, stages=2)
    shutil.rmtree(piped.path)
    folded = fold_runs(place.desk.runs(), newest=30)
    assert (len(folded.runs), folded.pipelines) == (2, [])


def test_a_run_that_cannot_be_read_is_not_folded_away(place: Place) -> None:
    broken = place.play("broken")
    broken.dir.spec.write_text("{")
    assert [dir.path for dir in fold_runs(place.desk.runs(), newest=30).runs] == [broken.dir.path]
