"""A copy of a run's folder has the run's id and journals, and is not the run: no verb touches the original's jobs through it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.errors import Conflict, CopiedFolder
from onward.model.run import LegEnd, RunState
from onward.operations.admin.doctor import examine_folders
from onward.operations.context import OperationsContext
from onward.operations.hosts.local import LocalHost
from onward.operations.repair.tend import tend
from onward.operations.runs.control import cancel, resume, stop
from onward.operations.runs.find import find_run
from onward.operations.runs.home import HomeCheck
from onward.operations.runs.record import inspect_run, run_record
from onward.rundir.home import record_home
from onward.rundir.layout import RunDir
from onward.supervisor.disk import salvage
from onward.supervisor.main import main as live_leg
from tests.desks import Place, PlayedRun


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def copy(run: PlayedRun, to: str = "2026-11-15_X_copy", root: Path | None = None) -> RunDir:
    target = (root or run.place.root) / to
    shutil.copytree(run.dir.path, target, symlinks=True)
    return RunDir(target)


def move_to_another_disk(run: PlayedRun, to: Path) -> RunDir:
    """As `mv` does between file systems: the folder there is a new one."""
    to.parent.mkdir(exist_ok=True)
    shutil.copytree(run.dir.path, to, symlinks=True)
    shutil.rmtree(run.dir.path)
    return RunDir(to)


def live(place: Place) -> list[str]:
    return [job.status.name.rsplit(".", 1)[0] for job in place.scheduler.jobs.values() if job.status.state.live]


def files(dir: RunDir) -> list[str]:
    return sorted(str(path.relative_to(dir.path)) for path in dir.path.rglob("*"))


ACTS: dict[str, Callable[[OperationsContext, RunDir], object]] = {
    "cancel": cancel,
    "stop": stop,
    "resume": lambda desk, dir: resume(desk, dir, changes={}),
}


# ── a copy ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "of an earlier version"])
def test_a_copy_of_a_run_at_work_is_refused_and_the_run_goes_on(place: Place, act: str, recorded: bool) -> None:
    run = place.play()
    if recorded:
        record_home(run.dir)
    run.begin(1)
    made = copy(run)
    before, there = live(place), files(made)
    with pytest.raises(CopiedFolder) as caught:
        ACTS[act](place.desk, made)
    assert f"{made.path} is a copy of {run.dir.path}" in caught.value.message
    assert f"onward clone {made.path}" in caught.value.hint
    assert caught.value.exit_code == 5
    assert live(place) == before
    assert files(made) == there
    assert run.run.state is RunState.RUNNING
    assert not run.run.cancel and not run.run.stop


def test_a_copy_of_a_cancelled_run_is_not_resumed(place: Place) -> None:
    run = place.play()
    cancel(place.desk, run.dir)
    with pytest.raises(CopiedFolder):
        resume(place.desk, copy(run), changes={})
    assert live(place) == []
    resume(place.desk, run.dir, changes={})
    assert live(place) == ["digits.2"]


def test_tend_leaves_a_copy_alone_and_is_silent_about_it(place: Place) -> None:
    run = place.play()
    made = copy(run)
    place.scheduler.forget(run.job(1))
    place.clock.sleep(60)
    there = files(made)
    report = tend(place.desk)
    assert len(report.acted) == 1
    assert report.problems == []
    assert live(place) == ["digits.1"]
    assert files(made) == there


def test_a_copy_in_another_root_knows_the_run_too(place: Place, tmp_path: Path) -> None:
    run = place.play().begin(1)
    (tmp_path / "backup").mkdir()
    with pytest.raises(CopiedFolder):
        cancel(place.desk, copy(run, root=tmp_path / "backup"))


def test_a_copy_under_a_link_to_the_root_is_a_copy_and_the_run_under_it_is_the_run(place: Place, tmp_path: Path) -> None:
    run = place.play()
    made = copy(run)
    (tmp_path / "link").symlink_to(place.root)
    with pytest.raises(CopiedFolder):
        cancel(place.desk, RunDir(tmp_path / "link" / made.path.name))
    assert cancel(place.desk, RunDir(tmp_path / "link" / run.dir.path.name)).state is RunState.CANCELLED


def test_show_says_that_a_folder_is_a_copy(place: Place) -> None:
    run = place.play().begin(1)
    made = copy(run)
    entry = run_record(inspect_run(place.desk, made))
    assert entry["copy_of"] == str(run.dir.path)
    assert f"copy of {run.dir.path}" in entry["reason"]
    assert "onward clone" in entry["next"]
    assert entry["no_job_since"] is None
    assert run_record(inspect_run(place.desk, run.dir))["copy_of"] is None
    listed = {one["folder"]: one["copy_of"] for one in LocalHost(place.desk).runs(state=None, newest=None).runs}
    assert listed == {str(run.dir.path): None, str(made.path): str(run.dir.path)}


@pytest.mark.parametrize("text", ["k00digit", "k00", "digits"])
def test_an_id_or_name_that_a_copy_shares_means_the_run(place: Place, text: str) -> None:
    run = place.play()
    copy(run, to="2026-11-14_A_digits")
    assert find_run(place.desk, text).path == run.dir.path


def test_folders_of_one_run_that_cannot_be_told_apart_are_named(place: Place) -> None:
    run = place.play()
    made = copy(run)
    for dir in (run.dir, made):
        dir.script(1).unlink()  # nothing tells where the run lives
    with pytest.raises(Conflict) as caught:
        find_run(place.desk, "k00digit")
    assert caught.value.message == "2 folders contain the run k00digit"
    assert str(run.dir.path) in caught.value.hint and str(made.path) in caught.value.hint
    assert find_run(place.desk, str(made.path)).path == made.path


def test_the_doctor_says_which_of_two_folders_is_the_copy(place: Place) -> None:
    run = place.play()
    made = copy(run, to="2026-11-14_A_digits")
    [(fine, what, words)] = examine_folders(place.desk)
    assert (fine, what) == (False, "folder")
    assert words.startswith(f"{made.path} is a copy of {run.dir.path}")


def test_a_job_that_starts_in_a_copy_leaves_before_it_touches_anything(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    made = copy(place.play().begin(1))
    there = files(made)
    assert live_leg([str(made.path), "2"]) == 1
    assert "is a copy of" in capfd.readouterr().err
    assert files(made) == there


def test_salvage_by_hand_of_a_copy_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    run = place.play().begin(1)
    assert salvage.main([str(copy(run).path)]) == 5
    assert "is a copy of" in capsys.readouterr().err


# ── a folder that was moved ───────────────────────────────────────────────────


def ended(place: Place) -> PlayedRun:
    """A run that met its limit, and whose jobs are all gone."""
    run = place.play().begin(1).publish(1, 10)
    run.end(1, LegEnd.TIME_LIMIT)
    place.scheduler.forget(run.job(2))
    return run.later(60)


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "of an earlier version"])
@pytest.mark.parametrize("other_disk", [True, False], ids=["to another disk", "renamed"])
def test_a_moved_run_goes_on_from_where_it_is(place: Place, tmp_path: Path, recorded: bool, other_disk: bool) -> None:
    run = ended(place)
    place.play("other")  # so that the root it came from is seen to be one
    if recorded:
        record_home(run.dir)
    moved = RunDir(place.root / "2026-11-15_Z_moved")
    if other_disk:
        moved = move_to_another_disk(run, moved.path)
    else:
        run.dir.path.rename(moved.path)
    [acted] = tend(place.desk).acted
    assert "queued leg 2" in acted
    assert json.loads(moved.home.read_text())["path"] == str(moved.path)
    assert cancel(place.desk, moved).state is RunState.CANCELLED


def test_a_run_that_was_moved_and_left_a_link_behind_is_the_run(place: Place, tmp_path: Path) -> None:
    run = place.play()
    record_home(run.dir)
    moved = move_to_another_disk(run, tmp_path / "elsewhere" / run.dir.path.name)
    run.dir.path.symlink_to(moved.path)
    assert cancel(place.desk, moved).state is RunState.CANCELLED


def test_a_copy_stays_a_copy_when_the_run_is_moved(place: Place) -> None:
    run = place.play()
    record_home(run.dir)
    made = copy(run)
    moved = RunDir(run.dir.path.rename(place.root / "2026-11-15_Z_moved"))
    with pytest.raises(CopiedFolder, match=str(moved.path)):
        cancel(place.desk, made)
    assert cancel(place.desk, moved).state is RunState.CANCELLED


def test_of_two_copies_whose_run_is_gone_a_person_says_which_is_the_run(place: Place) -> None:
    run = place.play()
    record_home(run.dir)
    one, other = copy(run, to="2026-11-15_X_one"), copy(run, to="2026-11-15_Y_other")
    shutil.rmtree(run.dir.path)
    for dir in (one, other):
        with pytest.raises(Conflict, match="is also in") as caught:
            cancel(place.desk, dir)
        assert "onward adopt" in caught.value.hint
    assert len(tend(place.desk).problems) == 2
    HomeCheck(place.desk).adopt(one)
    with pytest.raises(CopiedFolder):
        HomeCheck(place.desk).adopt(other)
    with pytest.raises(CopiedFolder):
        cancel(place.desk, other)
    assert cancel(place.desk, one).state is RunState.CANCELLED


def test_where_the_old_root_cannot_be_seen_a_person_adopts_the_folder(place: Place, tmp_path: Path) -> None:
    run = place.play()
    record_home(run.dir)
    moved = move_to_another_disk(run, tmp_path / "elsewhere" / run.dir.path.name)
    shutil.rmtree(place.root)
    with pytest.raises(Conflict, match="cannot be read now") as caught:
        cancel(place.desk, moved)
    assert f"onward adopt {moved.path}" in caught.value.hint
    assert LocalHost(place.desk).adopt(run=str(moved.path)).id == "k00digit"
    assert cancel(place.desk, moved).state is RunState.CANCELLED


def test_a_copy_of_a_run_that_is_there_cannot_be_adopted_nor_the_run_itself(place: Place) -> None:
    run = place.play()
    with pytest.raises(CopiedFolder):
        HomeCheck(place.desk).adopt(copy(run))
    with pytest.raises(Conflict, match="already"):
        HomeCheck(place.desk).adopt(run.dir)


def test_another_run_that_was_put_where_the_run_was_is_not_taken_for_it(place: Place) -> None:
    run = place.play()
    record_home(run.dir)
    moved = RunDir(run.dir.path.rename(place.root / "2026-11-15_Z_moved"))
    place.play("digits")
    (place.root / "2026-11-15_B_digits").rename(run.dir.path)
    assert cancel(place.desk, moved).state is RunState.CANCELLED


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": 7}', '{"path": "/x", "inode": "y"}', "\0"])
def test_a_damaged_record_does_not_keep_a_run_from_its_owner(place: Place, text: str) -> None:
    run = place.play()
    run.dir.home.write_text(text)
    assert cancel(place.desk, run.dir).state is RunState.CANCELLED


def test_submit_records_where_the_run_lives(place: Place) -> None:
    dir = place.submit()
    assert json.loads(dir.home.read_text()) == {"path": str(dir.path), "inode": os.stat(dir.path).st_ino}
