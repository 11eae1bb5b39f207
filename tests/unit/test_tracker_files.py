"""Run folders are tailed: everything once, whatever happens to the files and to whoever reads them."""

from __future__ import annotations

import errno
import json
import os
import pwd
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onward.errors import InvalidInput, NotFound
from onward.model import events as ev
from onward.model.run import Run
from onward.model.spec import spec_to_json
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.tracker.ingest.folders import spool_positions, tail
from onward.tracker.store import Tracker
from tests.databases import new_database
from tests.histories import make_spec

NOW = 1_700_000_000.0


class Folder:
    """A run's folder, written as its writers write it."""

    def __init__(self, root: Path, name: str = "2026-11-15_A_digits", **spec: Any) -> None:
        self.dir = RunDir(root / name)
        self.dir.make()
        self.spec = make_spec(params={"lr": 0.1}, **spec)
        self.dir.spec.write_text(json.dumps(spec_to_json(self.spec)))

    def event(self, event: ev.Event) -> None:
        with self.dir.leg_journal(event.leg).open("a") as file:
            file.write(event.line() + "\n")

    def begin(self, leg: int, *, resumed: int | None = None) -> None:
        self.event(ev.Claimed(leg=leg, at=NOW + leg, job=str(100 + leg), hosts=["n1"], deadline=None))
        if resumed is not None:
            self.event(ev.Restored(leg=leg, at=NOW + leg + 0.1, step=resumed, checkpoint="x"))

    def path(self, leg: int, pid: int = 7) -> Path:
        return self.dir.spool / f"leg-{leg:04d}.train-{pid}.jsonl"

    def log(self, leg: int, *steps: int, start: int = 0, value: float = 1.0, pid: int = 7) -> str:
        text = "".join(json.dumps({"n": n, "t": NOW + n, "s": s, "m": {"loss": value}}) + "\n" for n, s in enumerate(steps, start))
        with self.path(leg, pid).open("a") as file:
            file.write(text)
        return text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return new_database(tmp_path / "onward.db")


@pytest.fixture
def tracker(address: str | Path) -> Iterator[Tracker]:
    with Tracker.open(address) as opened:
        yield opened


@pytest.fixture
def folder(root: Path) -> Folder:
    return Folder(root)


def steps(tracker: Tracker, run: str = "k3x9q2m7") -> list[int]:
    return [point.step for point in tracker.series.points(run, "loss")]


def test_the_leg_of_a_run_is_the_one_that_runs_not_its_queued_successor(tracker: Tracker, root: Path, folder: Folder) -> None:
    def queue(leg: int) -> None:
        folder.event(ev.Submitted(leg=leg, at=NOW, name=f"digits.{leg}.token", job=str(100 + leg)))

    queue(1)
    tracker.files.look([root])
    assert tracker.runs.get("k3x9q2m7").leg == 0
    folder.begin(1)
    queue(2)
    tracker.files.look([root])
    assert (tracker.runs.get("k3x9q2m7").leg, len(tracker.runs.legs("k3x9q2m7"))) == (1, 2)
    tracker.ingest.points("k3x9q2m7", [("loss", 3, NOW, 1.0)])
    assert [point.leg for point in tracker.series.points("k3x9q2m7", "loss")] == [1]
    folder.begin(2)
    tracker.files.look([root])
    assert tracker.runs.get("k3x9q2m7").leg == 2


def test_a_folder_becomes_a_run_with_legs_params_and_one_stitched_curve(tracker: Tracker, root: Path, folder: Folder) -> None:
    folder.begin(1)
    folder.log(1, *range(10))
    assert tracker.files.look([root]).points == 10
    folder.event(ev.Ended(leg=1, at=NOW + 50, end="time_limit", reason="the limit is near"))
    folder.begin(2, resumed=6)
    folder.log(2, 7, 8, value=2.0)
    tracker.files.look([root])
    view = tracker.runs.view("k3x9q2m7")
    assert (view.info.state, view.info.name, view.info.experiment_name, view.params) == ("running", "digits", "digits", {"lr": "0.1"})
    assert [(leg["leg"], leg["job"], leg["end"], leg["resumed_step"]) for leg in tracker.runs.legs("k3x9q2m7")] == [
        (1, "101", "time_limit", None),
        (2, "102", None, 6),
    ]
    assert steps(tracker) == list(range(9))
    assert view.metrics["loss"].value == 2.0
    folder.event(ev.Closed(leg=2, at=NOW + 99, state="finished", cause="done"))
    tracker.files.look([root])
    assert (tracker.runs.get("k3x9q2m7").state, tracker.runs.get("k3x9q2m7").ended) == ("finished", NOW + 99)


def test_a_run_is_not_called_finished_before_its_last_points_are_read(
    tracker: Tracker, root: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that waits for the end, and reads the metrics then, gets all of them: however large the rest is, and whenever it came."""
    monkeypatch.setattr(tail, "TURN", 100)
    monkeypatch.setattr(tail, "read_piece", partial(spool_positions.read_piece, piece=100))
    folder.begin(1)
    folder.log(1, 0)
    tracker.files.look([root])
    folder.log(1, *range(1, 30), start=1)
    folder.event(ev.Closed(leg=1, at=NOW + 99, state="finished", cause="done"))
    looks = 0
    while tracker.runs.get("k3x9q2m7").state != "finished":
        tracker.files.look([root])
        looks += 1
    assert steps(tracker) == list(range(30)) and looks > 2


def test_points_that_came_after_the_folder_was_listed_are_read_before_the_end_is_told(
    tracker: Tracker, root: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.begin(1)
    folder.log(1, 0)
    tracker.files.look([root])

    def read_a_moment_later(dir: RunDir) -> Run:
        folder.log(1, 1, 2, start=1)
        folder.event(ev.Closed(leg=1, at=NOW + 99, state="finished", cause="done"))
        monkeypatch.setattr(tail, "read_run", read_run)
        return read_run(dir)

    monkeypatch.setattr(tail, "read_run", read_a_moment_later)
    folder.event(ev.Warned(leg=1, at=NOW + 50, text="something new"))
    tracker.files.look([root])
    assert (tracker.runs.get("k3x9q2m7").state, steps(tracker)) == ("finished", [0, 1, 2])


def test_a_spool_that_cannot_be_read_does_not_hold_the_end_of_its_run_back(
    tracker: Tracker, root: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.begin(1)
    folder.log(1, 0)
    tracker.files.look([root])

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(tail, "read_piece", refuse)
    folder.log(1, 1, start=1)
    folder.event(ev.Closed(leg=1, at=NOW + 99, state="finished", cause="done"))
    tracker.files.look([root])
    assert tracker.runs.get("k3x9q2m7").state == "finished"


def test_a_spool_without_end_does_not_hold_the_end_of_its_run_back_for_ever(
    tracker: Tracker, root: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "TURN", 100)
    monkeypatch.setattr(tail, "read_piece", partial(spool_positions.read_piece, piece=100))
    folder.begin(1)
    folder.log(1, 0)
    tracker.files.look([root])
    folder.log(1, *range(1, 100), start=1)
    folder.event(ev.Closed(leg=1, at=NOW + 99, state="finished", cause="done"))
    tracker.files.look([root])
    assert tracker.runs.get("k3x9q2m7").state == "running"
    monkeypatch.setattr(tail, "_MOST_HELD_BACK", 0.0)
    tracker.files.look([root])
    assert tracker.runs.get("k3x9q2m7").state == "finished"


def test_where_nothing_changed_nothing_is_done(tracker: Tracker, root: Path, folder: Folder) -> None:
    folder.begin(1)
    folder.log(1, 1, 2)
    tracker.files.look([root])
    version = tracker.version()
    assert (tracker.files.look([root]).changed, tracker.version()) == (0, version)


def test_a_torn_last_line_waits_for_its_rest(tracker: Tracker, root: Path, folder: Folder) -> None:
    whole = folder.log(1, 1, 2, 3)
    folder.path(1).write_text(whole[:-20])
    assert tracker.files.look([root]).points == 2
    assert tracker.files.look([root]).points == 0
    folder.path(1).write_text(whole)
    assert tracker.files.look([root]).points == 1
    assert steps(tracker) == [1, 2, 3]


def test_a_restarted_tracker_goes_on_where_it_was(address: str | Path, tracker: Tracker, root: Path, folder: Folder) -> None:
    folder.begin(1)
    folder.log(1, 1, 2)
    tracker.files.look([root])
    with Tracker.open(address) as other:
        assert other.files.look([root]).points == 0
        folder.log(1, 3, start=2)
        assert other.files.look([root]).points == 1
    assert tracker.files.look([root]).points == 0  # the other was faster
    folder.log(1, 4, start=3)
    assert tracker.files.look([root]).points == 1
    assert steps(tracker) == [1, 2, 3, 4]


def test_a_file_that_became_shorter_or_another_is_read_anew_and_nothing_doubles(tracker: Tracker, root: Path, folder: Folder) -> None:
    text = folder.log(1, 1, 2, 3)
    tracker.files.look([root])
    folder.path(1).write_text(text.splitlines(keepends=True)[0])
    looked = tracker.files.look([root])
    assert looked.points == 0
    assert "was replaced" in looked.problems[0]
    folder.path(1).write_text(text)
    assert tracker.files.look([root]).points == 0
    assert steps(tracker) == [1, 2, 3]
    other = "".join(json.dumps({"n": n, "t": NOW + 500 + n, "s": 10 + n, "m": {"loss": 1.0}}) + "\n" for n in range(20))
    folder.path(1).write_text(other)
    assert tracker.files.look([root]).points == 20


def test_a_file_that_vanished_takes_nothing_along(tracker: Tracker, root: Path, folder: Folder) -> None:
    text = folder.log(1, 1, 2, 3)
    tracker.files.look([root])
    folder.path(1).unlink()
    assert tracker.files.look([root]).problems == []
    assert steps(tracker) == [1, 2, 3]
    folder.path(1).write_text(text)
    assert tracker.files.look([root]).points == 0
    shutil.rmtree(folder.dir.path)
    tracker.files.look([root])
    assert steps(tracker) == [1, 2, 3]


def test_lines_that_are_no_records_are_told_once_and_passed_over(tracker: Tracker, root: Path, folder: Folder) -> None:
    folder.log(1, 1)
    with folder.path(1).open("a") as file:
        file.write('garbage\n\x00\x00\n{"n": 1}\n' + "[" * 100_000 + "\n")
    folder.log(1, 2, start=2)
    looked = tracker.files.look([root])
    assert (looked.points, len(looked.problems)) == (2, 1)
    assert "4 lines were ignored" in looked.problems[0]


def test_one_broken_folder_does_not_keep_others_from_being_read(tracker: Tracker, root: Path, folder: Folder) -> None:
    broken = Folder(root, "2026-11-15_B_broken", id="brokenxx")
    broken.dir.spec.write_text("{")
    folder.log(1, 1)
    looked = tracker.files.look([root])
    assert (looked.runs, looked.points) == (2, 1)
    assert "2026-11-15_B_broken" in looked.problems[0]


def test_two_folders_of_one_run_are_told_of(tracker: Tracker, root: Path, folder: Folder) -> None:
    folder.log(1, 1)
    tracker.files.look([root])
    shutil.copytree(folder.dir.path, root / "2026-11-16_A_copy")
    looked = tracker.files.look([root])
    assert any("that run is in" in problem for problem in looked.problems)
    assert tracker.runs.get("k3x9q2m7").folder == str(folder.dir.path)


def test_a_folder_that_was_moved_is_the_same_run(tracker: Tracker, root: Path, folder: Folder) -> None:
    folder.log(1, 1)
    tracker.files.look([root])
    moved = folder.dir.path.rename(root / "2026-11-15_Z_digits")
    assert tracker.files.look([root]).problems == []
    assert tracker.runs.get("k3x9q2m7").folder == str(moved)
    assert steps(tracker) == [1]


def test_a_training_started_by_hand_is_a_run_too(tracker: Tracker, root: Path) -> None:
    spool = root / "by-hand" / "2026-11-15_101010_digits_77" / "spool"
    spool.mkdir(parents=True)
    lines = [
        {"n": 0, "t": NOW, "kind": "init", "total": 10, "params": {"lr": 1}, "pid": 77},
        {"n": 1, "t": NOW, "s": 1, "m": {"loss": 1}},
        {"n": 2, "t": NOW + 5, "kind": "finish", "s": 1},
    ]
    (spool / "leg-0001.train-77.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert tracker.files.look([root]).points == 1
    from onward.tracker.runs.registry import RunQuery

    [view] = tracker.runs.search(RunQuery()).runs
    assert (view.info.name, view.info.source, view.info.state, view.params) == ("digits", "by-hand", "finished", {"lr": "1"})
    assert tracker.files.look([root]).changed == 0


def test_a_root_that_is_not_there_has_no_runs(tracker: Tracker, tmp_path: Path) -> None:
    assert tracker.files.look([tmp_path / "nowhere"]).runs == 0


# ── sent instead of read ──────────────────────────────────────────────────────


def test_pieces_that_are_sent_make_the_same_run_as_its_folder(tracker: Tracker, root: Path) -> None:
    folder = Folder(root, user=pwd.getpwuid(os.getuid()).pw_name)
    folder.begin(1)
    text = folder.log(1, 1, 2, 3).encode()
    folder.event(ev.Ended(leg=1, at=NOW + 50, end="time_limit", reason="the limit is near"))
    folder.begin(2, resumed=2)
    run = tracker.push.announce(spec_to_json(folder.spec))
    assert tracker.push.announce(spec_to_json(folder.spec)) == run
    file = f"spool/{folder.path(1).name}"
    cut = len(text) - 20
    at = tracker.push.piece(run, file, 0, text[:cut])
    assert at == text.rfind(b"\n", 0, cut) + 1
    assert tracker.push.piece(run, file, at + 5, b"x") == at  # a hole: go on from there
    assert tracker.push.piece(run, file, 0, text) == len(text)
    assert tracker.push.piece(run, file, 0, text) == len(text)
    for leg in (1, 2):
        tracker.push.piece(run, f"journal/leg-{leg:04d}.jsonl", 0, folder.dir.leg_journal(leg).read_bytes())
    assert (steps(tracker), [leg["leg"] for leg in tracker.runs.legs(run)]) == ([1, 2], [1, 2])
    assert tracker.files.look([root]).points == 0  # both at once change nothing
    folder.log(1, 2, start=3, pid=8)
    assert tracker.files.look([root]).points == 1
    assert tracker.push.piece(run, "spool/leg-0001.train-8.jsonl", 0, folder.path(1, 8).read_bytes()) == folder.path(1, 8).stat().st_size
    assert steps(tracker) == [1, 2, 2]


@pytest.mark.parametrize("file", ["spool/../x.jsonl", "journal/a/b.jsonl", "params/spec.json", "spool/x.jsonl", "", "journal/.\n.jsonl"])
def test_a_piece_of_anything_else_is_refused(tracker: Tracker, folder: Folder, file: str) -> None:
    run = tracker.push.announce(spec_to_json(folder.spec))
    with pytest.raises(InvalidInput):
        tracker.push.piece(run, file, 0, b"{}\n")


def test_a_piece_of_a_run_that_was_not_announced_is_refused(tracker: Tracker) -> None:
    with pytest.raises(NotFound):
        tracker.push.piece("nobody", "journal/leg-0001.jsonl", 0, b"{}\n")
    with pytest.raises(InvalidInput, match="not a run's spec"):
        tracker.push.announce({"id": "x"})
