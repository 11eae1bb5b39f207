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
from tests.sandbox import PlayedRun, Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def copy(run: PlayedRun, to: str = "2026-11-15_X_copy", root: Path | None = None) -> RunDir:
    target = (root or run.sandbox.root) / to
    shutil.copytree(run.dir.path, target, symlinks=True)
    return RunDir(target)


def move_to_another_disk(run: PlayedRun, to: Path) -> RunDir:
    """As `mv` does between file systems: the folder there is a new one."""
    to.parent.mkdir(exist_ok=True)
    shutil.copytree(run.dir.path, to, symlinks=True)
    shutil.rmtree(run.dir.path)
    return RunDir(to)


def live(sandbox: Sandbox) -> list[str]:
    return [job.status.name.rsplit(".", 1)[0] for job in sandbox.scheduler.jobs.values() if job.status.state.live]


def files(dir: RunDir) -> list[str]:
    return sorted(str(path.relative_to(dir.path)) for path in dir.path.rglob("*"))


ACTS: dict[str, Callable[[OperationsContext, RunDir], object]] = {
    "cancel": cancel,
    "stop": stop,
    "resume": lambda context, dir: resume(context, dir, changes={}),
}


# ── a copy ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "of an earlier version"])
def test_a_copy_of_a_run_at_work_is_refused_and_the_run_goes_on(sandbox: Sandbox, act: str, recorded: bool) -> None:
    run = sandbox.play()
    if recorded:
        record_home(run.dir)
    run.begin(1)
    made = copy(run)
    before, there = live(sandbox), files(made)
    with pytest.raises(CopiedFolder) as caught:
        ACTS[act](sandbox.context, made)
    assert f"{made.path} is a copy of {run.dir.path}" in caught.value.message
    assert f"onward clone {made.path}" in caught.value.hint
    assert caught.value.exit_code == 5
    assert live(sandbox) == before
    assert files(made) == there
    assert run.run.state is RunState.RUNNING
    assert not run.run.cancel and not run.run.stop


def test_a_copy_of_a_cancelled_run_is_not_resumed(sandbox: Sandbox) -> None:
    run = sandbox.play()
    cancel(sandbox.context, run.dir)
    with pytest.raises(CopiedFolder):
        resume(sandbox.context, copy(run), changes={})
    assert live(sandbox) == []
    resume(sandbox.context, run.dir, changes={})
    assert live(sandbox) == ["digits.2"]


def test_tend_leaves_a_copy_alone_and_is_silent_about_it(sandbox: Sandbox) -> None:
    run = sandbox.play()
    made = copy(run)
    sandbox.scheduler.forget(run.job(1))
    sandbox.clock.sleep(60)
    there = files(made)
    report = tend(sandbox.context)
    assert len(report.acted) == 1
    assert report.problems == []
    assert live(sandbox) == ["digits.1"]
    assert files(made) == there


def test_a_copy_in_another_root_knows_the_run_too(sandbox: Sandbox, tmp_path: Path) -> None:
    run = sandbox.play().begin(1)
    (tmp_path / "backup").mkdir()
    with pytest.raises(CopiedFolder):
        cancel(sandbox.context, copy(run, root=tmp_path / "backup"))


def test_a_copy_under_a_link_to_the_root_is_a_copy_and_the_run_under_it_is_the_run(sandbox: Sandbox, tmp_path: Path) -> None:
    run = sandbox.play()
    made = copy(run)
    (tmp_path / "link").symlink_to(sandbox.root)
    with pytest.raises(CopiedFolder):
        cancel(sandbox.context, RunDir(tmp_path / "link" / made.path.name))
    assert cancel(sandbox.context, RunDir(tmp_path / "link" / run.dir.path.name)).state is RunState.CANCELLED


def test_show_says_that_a_folder_is_a_copy(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    made = copy(run)
    entry = run_record(inspect_run(sandbox.context, made))
    assert entry["copy_of"] == str(run.dir.path)
    assert f"copy of {run.dir.path}" in entry["reason"]
    assert "onward clone" in entry["next"]
    assert entry["no_job_since"] is None
    assert run_record(inspect_run(sandbox.context, run.dir))["copy_of"] is None
    listed = {one["folder"]: one["copy_of"] for one in LocalHost(sandbox.context).runs(state=None, newest=None).runs}
    assert listed == {str(run.dir.path): None, str(made.path): str(run.dir.path)}


@pytest.mark.parametrize("text", ["k00digit", "k00", "digits"])
def test_an_id_or_name_that_a_copy_shares_means_the_run(sandbox: Sandbox, text: str) -> None:
    run = sandbox.play()
    copy(run, to="2026-11-14_A_digits")
    assert find_run(sandbox.context, text).path == run.dir.path


def test_folders_of_one_run_that_cannot_be_told_apart_are_named(sandbox: Sandbox) -> None:
    run = sandbox.play()
    made = copy(run)
    for dir in (run.dir, made):
        dir.script(1).unlink()  # nothing tells where the run lives
    with pytest.raises(Conflict) as caught:
        find_run(sandbox.context, "k00digit")
    assert caught.value.message == "2 folders contain the run k00digit"
    assert str(run.dir.path) in caught.value.hint and str(made.path) in caught.value.hint
    assert find_run(sandbox.context, str(made.path)).path == made.path


def test_the_doctor_says_which_of_two_folders_is_the_copy(sandbox: Sandbox) -> None:
    run = sandbox.play()
    made = copy(run, to="2026-11-14_A_digits")
    [(fine, what, words)] = examine_folders(sandbox.context)
    assert (fine, what) == (False, "folder")
    assert words.startswith(f"{made.path} is a copy of {run.dir.path}")


def test_a_job_that_starts_in_a_copy_leaves_before_it_touches_anything(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    made = copy(sandbox.play().begin(1))
    there = files(made)
    assert live_leg([str(made.path), "2"]) == 1
    assert "is a copy of" in capfd.readouterr().err
    assert files(made) == there


def test_salvage_by_hand_of_a_copy_is_refused(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    run = sandbox.play().begin(1)
    assert salvage.main([str(copy(run).path)]) == 5
    assert "is a copy of" in capsys.readouterr().err


# ── a folder that was moved ───────────────────────────────────────────────────


def ended(sandbox: Sandbox) -> PlayedRun:
    """A run that met its limit, and whose jobs are all gone."""
    run = sandbox.play().begin(1).publish(1, 10)
    run.end(1, LegEnd.TIME_LIMIT)
    sandbox.scheduler.forget(run.job(2))
    return run.later(60)


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "of an earlier version"])
@pytest.mark.parametrize("other_disk", [True, False], ids=["to another disk", "renamed"])
def test_a_moved_run_goes_on_from_where_it_is(sandbox: Sandbox, tmp_path: Path, recorded: bool, other_disk: bool) -> None:
    run = ended(sandbox)
    sandbox.play("other")  # so that the root it came from is seen to be one
    if recorded:
        record_home(run.dir)
    moved = RunDir(sandbox.root / "2026-11-15_Z_moved")
    if other_disk:
        moved = move_to_another_disk(run, moved.path)
    else:
        run.dir.path.rename(moved.path)
    [acted] = tend(sandbox.context).acted
    assert "queued leg 2" in acted
    assert json.loads(moved.home.read_text())["path"] == str(moved.path)
    assert cancel(sandbox.context, moved).state is RunState.CANCELLED


def test_a_run_that_was_moved_and_left_a_link_behind_is_the_run(sandbox: Sandbox, tmp_path: Path) -> None:
    run = sandbox.play()
    record_home(run.dir)
    moved = move_to_another_disk(run, tmp_path / "elsewhere" / run.dir.path.name)
    run.dir.path.symlink_to(moved.path)
    assert cancel(sandbox.context, moved).state is RunState.CANCELLED


def test_a_copy_stays_a_copy_when_the_run_is_moved(sandbox: Sandbox) -> None:
    run = sandbox.play()
    record_home(run.dir)
    made = copy(run)
    moved = RunDir(run.dir.path.rename(sandbox.root / "2026-11-15_Z_moved"))
    with pytest.raises(CopiedFolder, match=str(moved.path)):
        cancel(sandbox.context, made)
    assert cancel(sandbox.context, moved).state is RunState.CANCELLED


def test_of_two_copies_whose_run_is_gone_a_person_says_which_is_the_run(sandbox: Sandbox) -> None:
    run = sandbox.play()
    record_home(run.dir)
    one, other = copy(run, to="2026-11-15_X_one"), copy(run, to="2026-11-15_Y_other")
    shutil.rmtree(run.dir.path)
    for dir in (one, other):
        with pytest.raises(Conflict, match="is also in") as caught:
            cancel(sandbox.context, dir)
        assert "onward adopt" in caught.value.hint
    assert len(tend(sandbox.context).problems) == 2
    HomeCheck(sandbox.context).adopt(one)
    with pytest.raises(CopiedFolder):
        HomeCheck(sandbox.context).adopt(other)
    with pytest.raises(CopiedFolder):
        cancel(sandbox.context, other)
    assert cancel(sandbox.context, one).state is RunState.CANCELLED


def test_where_the_old_root_cannot_be_seen_a_person_adopts_the_folder(sandbox: Sandbox, tmp_path: Path) -> None:
    run = sandbox.play()
    record_home(run.dir)
    moved = move_to_another_disk(run, tmp_path / "elsewhere" / run.dir.path.name)
    shutil.rmtree(sandbox.root)
    with pytest.raises(Conflict, match="cannot be read now") as caught:
        cancel(sandbox.context, moved)
    assert f"onward adopt {moved.path}" in caught.value.hint
    assert LocalHost(sandbox.context).adopt(run=str(moved.path)).id == "k00digit"
    assert cancel(sandbox.context, moved).state is RunState.CANCELLED


def test_a_copy_of_a_run_that_is_there_cannot_be_adopted_nor_the_run_itself(sandbox: Sandbox) -> None:
    run = sandbox.play()
    with pytest.raises(CopiedFolder):
        HomeCheck(sandbox.context).adopt(copy(run))
    with pytest.raises(Conflict, match="already"):
        HomeCheck(sandbox.context).adopt(run.dir)


def test_another_run_that_was_put_where_the_run_was_is_not_taken_for_it(sandbox: Sandbox) -> None:
    run = sandbox.play()
    record_home(run.dir)
    moved = RunDir(run.dir.path.rename(sandbox.root / "2026-11-15_Z_moved"))
    sandbox.play("digits")
    (sandbox.root / "2026-11-15_B_digits").rename(run.dir.path)
    assert cancel(sandbox.context, moved).state is RunState.CANCELLED


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": 7}', '{"path": "/x", "inode": "y"}', "\0"])
def test_a_damaged_record_does_not_keep_a_run_from_its_owner(sandbox: Sandbox, text: str) -> None:
    run = sandbox.play()
    run.dir.home.write_text(text)
    assert cancel(sandbox.context, run.dir).state is RunState.CANCELLED


def test_submit_records_where_the_run_lives(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    assert json.loads(dir.home.read_text()) == {"path": str(dir.path), "inode": os.stat(dir.path).st_ino}
