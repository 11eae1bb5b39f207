"""A server over many old runs: what is over is left alone, what changes is found, and no folder is looked at for nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from onward.errors import NotFound
from onward.model import events as ev
from onward.model.run import Run
from onward.operations.repair.killed_submits import sweep_killed_submits
from onward.operations.repair.tend import tend
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.rundir.root.reopened_runs import mark_reopened
from onward.sdk.unmanaged.folder import unmanaged_run_id
from onward.tracker import schema
from onward.tracker.ingest.folders.rotation import SWEEP, FolderRotation
from onward.tracker.ingest.folders.selection import OpenFolders
from onward.tracker.ingest.folders.spool_positions import read_piece
from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.sandbox import Sandbox
from tests.unit.test_tracker_files import NOW, Folder

OLD = 200  # runs that are over


class Calls:
    """Calls that reach the file system, by the path they are about."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def under(self, root: Path) -> list[str]:
        return [path for path in self.paths if path.startswith(str(root))]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    calls = Calls()

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            if not isinstance(path, int):
                calls.paths.append(os.fspath(path))
            return real(path, *args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in ("stat", "lstat", "scandir", "listdir", "open"):
            patch.setattr(os, name, counting(getattr(os, name)))
        yield calls


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return tmp_path / "onward.db"


def name_of(n: int) -> str:
    return f"2026-01-{1 + n % 28:02d}_{chr(65 + n // 28)}_old{n}"


def make_old_runs(tracker: Tracker, root: Path, count: int) -> None:
    """Runs that are over, as folders and in the store, long ago."""
    for n in range(count):
        folder = Folder(root, name_of(n), id=f"old{n:05d}")
        folder.begin(1)
        folder.event(ev.Closed(leg=1, at=NOW, state="failed", cause="it crashed"))
    tracker.files.look([root])
    age_all(tracker)


def age_all(tracker: Tracker) -> None:
    tracker.write(lambda batch: batch.connection.execute(update(schema.runs).values(updated=NOW)))
    tracker.runs.create(NewRun(name="of today"))  # so that the store has been served since


def test_a_start_over_many_old_runs_reads_none_of_their_folders_but_a_few(
    address: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Tracker.open(address) as tracker:
        make_old_runs(tracker, root, OLD)
    with Tracker.open(address) as tracker, counted(monkeypatch) as calls:
        assert tracker.files.look([root]).runs == SWEEP
        touched = {path.removeprefix(f"{root}/").split("/")[0] for path in calls.under(root)} & {name_of(n) for n in range(OLD)}
        assert len(touched) == SWEEP


def test_calls_to_the_disk_do_not_grow_with_the_number_of_old_runs(
    address: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few"
    few.mkdir()
    figures = []
    for here, count in ((few, 20), (root, OLD)):
        with Tracker.open(here.with_suffix(".db")) as tracker:
            make_old_runs(tracker, here, count)
        with Tracker.open(here.with_suffix(".db")) as tracker:
            Folder(here, "2026-11-15_A_live", id="liverun1").begin(1)
            for _ in range(30):
                tracker.files.look([here])
            with counted(monkeypatch) as calls:
                for _ in range(10):
                    tracker.files.look([here])
            figures.append(len(calls.under(here)))
    assert figures[1] <= figures[0] + 20


def test_every_old_run_has_its_turn(address: Path, root: Path) -> None:
    with Tracker.open(address) as tracker:
        make_old_runs(tracker, root, 3 * SWEEP)
    with Tracker.open(address) as tracker:
        folder = RunDir(root / name_of(3 * SWEEP - 1))
        with (folder.spool / "leg-0001.train-7.jsonl").open("w") as file:
            file.write('{"n": 0, "t": 1700000000.0, "s": 1, "m": {"late": 1.0}}\n')
        for _ in range(4):
            tracker.files.look([root])
        assert len(tracker.series.points(f"old{3 * SWEEP - 1:05d}", "late")) == 1


def test_a_new_run_is_found_among_many_old_ones_at_the_next_look(address: Path, root: Path) -> None:
    with Tracker.open(address) as tracker:
        make_old_runs(tracker, root, 3 * SWEEP)
    with Tracker.open(address) as tracker:
        for _ in range(5):
            tracker.files.look([root])
        new = Folder(root, id="newrun01")
        new.begin(1)
        new.log(1, 1, 2)
        assert tracker.files.look([root]).points == 2


def test_a_run_that_was_reopened_is_looked_at_at_once(address: Path, root: Path) -> None:
    with Tracker.open(address) as tracker:
        make_old_runs(tracker, root, 3 * SWEEP)
    with Tracker.open(address) as tracker:
        tracker.files.look([root])
        last = 3 * SWEEP - 1
        folder = Folder.__new__(Folder)
        folder.dir = RunDir(root / name_of(last))
        folder.event(ev.Resumed(leg=2, at=NOW + 9, by="ana", changes={}))
        mark_reopened(folder.dir)
        tracker.files.look([root])
        assert tracker.runs.get(f"old{last:05d}").state != "failed"
        folder.begin(2)
        tracker.files.look([root])
        assert tracker.runs.get(f"old{last:05d}").leg == 2


def test_marks_of_reopened_runs_are_kept_for_a_week(root: Path) -> None:
    run, other = RunDir(root / name_of(1)), RunDir(root / name_of(2))
    mark_reopened(run)
    os.utime(root / ".reopened" / name_of(1), (NOW, NOW))
    mark_reopened(other)
    assert os.listdir(root / ".reopened") == [name_of(2)]


def test_a_deleted_folder_is_forgotten_and_a_folder_that_becomes_a_run_is_read(address: Path, root: Path) -> None:
    with Tracker.open(address) as tracker:
        make_old_runs(tracker, root, 2)
        half = RunDir(root / "2026-11-15_A_half")
        half.params.mkdir(parents=True)
        tracker.files.look([root])
        assert tracker.files.open_folders() is not None
        shutil.rmtree(root / name_of(0))
        tracker.files.look([root])
        found = tracker.files.open_folders()
        assert found is not None
        assert found.others == [half.path]
        assert root / name_of(0) not in [dir.path for dir in found.runs]
        Folder(root, half.path.name, id="whole001").begin(1)
        tracker.files.look([root])
        assert tracker.runs.get("whole001").state == "running"
        found = tracker.files.open_folders()
        assert found is not None
        assert found.others == []


def test_a_run_by_hand_that_is_over_comes_to_rest(address: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = root / "by-hand" / "2026-11-15_120000_train_7" / "spool"
    spool.mkdir(parents=True)
    (spool / "leg-0001.train-7.jsonl").write_text('{"n": 0, "t": 1700000000.0, "s": 1, "m": {"loss": 1.0}}\n')
    with Tracker.open(address) as tracker:
        tracker.files.look([root])
        tracker.runs.update(unmanaged_run_id(spool.parent), state="failed")
        age_all(tracker)
    with Tracker.open(address) as tracker:
        for _ in range(3):
            tracker.files.look([root])
        with counted(monkeypatch) as calls:
            tracker.files.look([root])
        assert len([path for path in calls.under(spool.parent) if "tensorboard" not in path]) <= 2
        assert not [path for path in calls.paths if path == str(spool) + "/leg-0001.train-7.jsonl"]


def test_a_parent_that_cannot_be_seen_has_no_folders_and_comes_back(tmp_path: Path) -> None:
    rounds = FolderRotation(tmp_path / "runs", lambda parent: sorted(os.listdir(parent)))
    assert rounds.due() == []
    (tmp_path / "runs" / "a").mkdir(parents=True)
    assert rounds.due() == ["a"]


def test_tend_looks_only_at_the_folders_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.play("one").begin(1)
    sandbox.play("two").begin(1)
    first, second = sandbox.context.runs()
    sandbox.clock.sleep(60)
    with counted(monkeypatch) as calls:
        done = tend(sandbox.context, among=OpenFolders(runs=[first, RunDir(first.path.with_name("2026-01-01_A_gone"))], others=[]))
    assert (done.looked_at, done.problems) == (1, [])
    assert not calls.under(second.path)


def test_leftovers_are_found_among_the_folders_that_hold_no_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = RunDir(root / "2026-11-15_A_half")
    half.params.mkdir(parents=True)
    monkeypatch.setattr("onward.operations.repair.killed_submits._OLD", -1.0)
    assert sweep_killed_submits(root, []) == []
    assert len(sweep_killed_submits(root, [half.path])) == 1


def test_a_long_spool_does_not_keep_others_waiting(address: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.tracker.ingest.folders.tail.TURN", 1)
    monkeypatch.setattr(read_piece, "__kwdefaults__", {"piece": 100, "longest": 1000})
    long, other = Folder(root, id="longrun1"), Folder(root, "2026-11-15_B_other", id="shorter1")
    for folder, count in ((long, 40), (other, 1)):
        folder.begin(1)
        folder.log(1, *range(count))
    with Tracker.open(address) as tracker:
        tracker.files.look([root])
        assert len(tracker.series.points("shorter1", "loss")) == 1
        assert 0 < len(tracker.series.points("longrun1", "loss")) < 40
    with Tracker.open(address) as tracker:
        for _ in range(60):
            tracker.files.look([root])
        assert len(tracker.series.points("longrun1", "loss")) == 40


def test_one_folder_is_looked_at_alone_and_its_neighbours_are_not_even_listed(
    address: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, beside = Folder(root, id="wanted01"), Folder(root, "2026-11-15_B_beside", id="beside01")
    for folder in (wanted, beside):
        folder.begin(1)
        folder.log(1, 0, 1)

    def listed(_: Path) -> list[str]:
        raise AssertionError("the root is listed")

    with Tracker.open(address) as tracker, counted(monkeypatch) as calls:
        monkeypatch.setattr("onward.tracker.ingest.folders.selection._dated_names", listed)
        looked = tracker.files.look_at([wanted.dir])
        assert (looked.runs, looked.points, looked.more) == (1, 2, False)
        assert tracker.files.look_at([wanted.dir]).changed == 0
        assert not calls.under(beside.dir.path)
        with pytest.raises(NotFound):
            tracker.runs.get("beside01")


def test_a_look_at_a_long_spool_says_that_more_is_left(address: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.tracker.ingest.folders.tail.TURN", 1)
    monkeypatch.setattr(read_piece, "__kwdefaults__", {"piece": 100, "longest": 1000})
    folder = Folder(root)
    folder.begin(1)
    folder.log(1, *range(10))
    with Tracker.open(address) as tracker:
        looks = 1
        while tracker.files.look_at([folder.dir]).more:
            looks += 1
        assert looks > 2 and len(tracker.series.points("k3x9q2m7", "loss")) == 10


def test_a_run_that_settled_is_looked_into_again_only_when_it_changed(address: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.tracker.ingest.folders.tail.SETTLED", -1.0)
    folder = Folder(root)
    folder.begin(1)
    folder.event(ev.Closed(leg=1, at=NOW, state="failed", cause="it crashed"))
    with Tracker.open(address) as tracker:
        tracker.files.look_at([folder.dir])
        with counted(monkeypatch) as calls:
            tracker.files.look_at([folder.dir])
        assert set(calls.under(folder.dir.path)) <= {str(folder.dir.journals), str(folder.dir.spool)}
        folder.log(1, 0)
        assert tracker.files.look_at([folder.dir]).points == 1


def test_what_is_to_be_tended_is_told_while_a_look_is_at_work(address: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Folder(root).begin(1)
    with Tracker.open(address) as tracker:
        assert tracker.files.open_folders() is None
        entries: list[OpenFolders | None] = []

        def reading(dir: RunDir) -> Run:
            entries.append(tracker.files.open_folders())
            return read_run(dir)

        monkeypatch.setattr("onward.tracker.ingest.folders.tail.read_run", reading)
        tracker.files.look([root])
        assert [[dir.path.name for dir in one.runs] for one in entries if one] == [["2026-11-15_A_digits"]]


@pytest.mark.parametrize("bare", [False, True])
def test_old_runs_of_a_root_that_was_away_are_not_read_again(
    address: Path, root: Path, monkeypatch: pytest.MonkeyPatch, bare: bool
) -> None:
    with Tracker.open(address) as tracker:
        make_old_runs(tracker, root, 3 * SWEEP)
    with Tracker.open(address) as tracker:
        tracker.files.look([root])
        root.rename(away := root.with_name("away"))
        if bare:  # the mount point is there, and nothing in it
            root.mkdir()
        for _ in range(3):
            assert tracker.files.look([root]).problems == []
        if bare:
            root.rmdir()
        away.rename(root)
        assert tracker.files.look([root]).runs == SWEEP
        assert tracker.files.look([root]).runs == SWEEP
