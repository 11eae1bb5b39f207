"""The files that a batch script's author expects: their names, and how they grow."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.clock import ManualClock
from onward.model.spec import Outputs, Script
from onward.supervisor.preparation.batch_output import FileNameFields, OutputFiles, gridengine_name, share_one_file, slurm_name, targets
from tests.histories import make_spec

JOB = FileNameFields(job="123", name="digits", node="g1.lab.org", user="ada")
TASK = FileNameFields(job="123", name="digits", node="g1", user="ada", task=7)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("slurm-%j.out", "slurm-123.out"),
        ("%x/%u-%N.%A_%a", "digits/ada-g1.123_4294967294"),
        ("%%j-100%%", "%j-100%"),
        ("%8j.%t.%n", "00000123.0.0"),
        ("%99j", "0000000123"),
        ("%5x", "digits"),
        ("%q %", "%q %"),
        ("a\\%j", "a%j"),
    ],
)
def test_names_as_slurm_fills_them_in(pattern: str, name: str) -> None:
    assert slurm_name(pattern, JOB) == name


def test_names_of_a_task() -> None:
    assert slurm_name("%A_%a-%3a-%b", TASK) == "123_7-007-7"
    assert gridengine_name("$JOB_NAME.o$JOB_ID.$TASK_ID", TASK) == "digits.o123.7"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("$JOB_NAME.o$JOB_ID", "digits.o123"),
        ("${JOB_NAME}_x.$TASK_ID", "digits_x.undefined"),
        ("$HOME/$USER", "/home/ada/ada"),
        ("~/x", "/home/ada/x"),
        ("$HOSTNAME-$OTHER-$", "g1.lab.org-$OTHER-$"),
    ],
)
def test_names_as_grid_engine_fills_them_in(pattern: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert gridengine_name(pattern, JOB) == name


@given(st.text())
def test_any_pattern_gives_a_name(pattern: str) -> None:
    slurm_name(pattern, JOB)
    gridengine_name(pattern, TASK)


def spec_of(outputs: Outputs | None, family: str = "slurm", task: int | None = None) -> object:
    script = Script(name="train.sh", folder="/x", shell=("/bin/bash",), family=family, job_name="digits", task=task)
    return make_spec(outputs=outputs, script=script)


def test_targets_are_seen_from_the_folder_that_the_script_starts_in(tmp_path: Path) -> None:
    def found(outputs: Outputs | None, family: str = "slurm", task: int | None = None) -> dict[str, str]:
        paths = targets(spec_of(outputs, family, task), job="9", node="g1", folder=tmp_path)  # type: ignore[arg-type]
        return {stream: os.path.relpath(path, tmp_path) for stream, path in paths.items()}

    (tmp_path / "logs").mkdir()
    assert found(Outputs(out="logs/%j.out", err="logs/%j.err")) == {"out": "logs/9.out", "err": "logs/9.err"}
    assert found(Outputs(out="a", err="a")) == {"out": "a"}
    assert found(Outputs(out="/dev/null", err="e")) == {"err": "e"}
    assert found(None) == {}
    assert found(Outputs(out="logs"), "gridengine") == {"out": "logs/digits.o9"}
    assert found(Outputs(out="new/", err="logs"), "gridengine", 3) == {"out": "new/digits.o9.3", "err": "logs/digits.e9.3"}


def test_streams_that_go_to_one_file_are_one_in_the_run_too() -> None:
    assert share_one_file(spec_of(Outputs(out="a")))  # type: ignore[arg-type]
    assert share_one_file(spec_of(Outputs(out="a", err="a")))  # type: ignore[arg-type]
    assert not share_one_file(spec_of(Outputs(out="a", err="b")))  # type: ignore[arg-type]
    assert not share_one_file(make_spec())


class Copying:
    def __init__(self, folder: Path, target: Path, *, fresh: bool = True) -> None:
        self.log = folder / "leg-0001.out"
        self.log.touch()
        self.target = target
        self.said: list[str] = []
        self.clock = ManualClock(1000.0)
        self.files = OutputFiles(pairs=[(self.log, target)], fresh=fresh, warn=self.said.append, now=self.clock.now)

    def print(self, text: str) -> str:
        with self.log.open("a") as file:
            file.write(text)
        self.files.carry()
        return self.target.read_text() if self.target.is_file() else ""


def test_the_file_is_there_at_once_and_grows(tmp_path: Path) -> None:
    copying = Copying(tmp_path, tmp_path / "new" / "folder" / "out")
    assert copying.print("") == "" and copying.target.exists()
    assert copying.print("one\n") == "one\n"
    assert copying.print("two\n") == "one\ntwo\n"
    assert copying.said == []


@pytest.mark.parametrize(("fresh", "left"), [(True, "new\n"), (False, "old\nnew\n")])
def test_what_an_earlier_job_wrote_is_overwritten_or_kept(tmp_path: Path, fresh: bool, left: str) -> None:
    (tmp_path / "out").write_text("old\n")
    copying = Copying(tmp_path, tmp_path / "out", fresh=fresh)
    assert copying.print("new\n") == left


def test_lines_of_others_in_the_same_file_stay(tmp_path: Path) -> None:
    copying = Copying(tmp_path, tmp_path / "out")
    copying.print("mine\n")
    with copying.target.open("a") as file:
        file.write("theirs\n")
    assert copying.print("mine too\n") == "mine\ntheirs\nmine too\n"


def test_a_file_that_the_server_no_longer_knows_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying = Copying(tmp_path, tmp_path / "out")
    copying.print("one\n")
    stale = [OSError(errno.ESTALE, "Stale file handle")]

    def write(handle: int, data: bytes) -> int:
        if stale:
            raise stale.pop()
        return os.write(handle, data)

    monkeypatch.setattr("onward.supervisor.preparation.batch_output._write", write)
    assert copying.print("two\n") == "one\ntwo\n"
    assert copying.said == []


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    """As tools that rotate logs do it: what was written stays with the file that was moved."""
    copying = Copying(tmp_path, tmp_path / "out")
    copying.print("one\n")
    copying.target.rename(tmp_path / "out.1")
    copying.clock.sleep(61)
    assert copying.print("two\n") == "two\n"
    assert (tmp_path / "out.1").read_text() == "one\n"


def test_a_folder_that_cannot_be_made_is_told_of_once_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file, not a folder")
    copying = Copying(tmp_path, tmp_path / "logs" / "out")
    copying.print("one\n")
    copying.print("two\n")
    assert len(copying.said) == 1 and "cannot be written" in copying.said[0] and "it is only in the run's folder" in copying.said[0]
    (tmp_path / "logs").unlink()
    assert copying.print("three\n") == "one\ntwo\nthree\n"


def test_a_full_disk_loses_nothing_that_fits_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying = Copying(tmp_path, tmp_path / "out")
    copying.print("one\n")

    room = [2]

    def full(handle: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        taken = os.write(handle, data[: room[0]])
        room[0] -= taken
        return taken

    with monkeypatch.context() as there:
        there.setattr("onward.supervisor.preparation.batch_output._write", full)
        copying.print("two\n")
        copying.print("three\n")
    assert copying.said == [f"output cannot be written to {copying.target}: No space left on device; it is only in the run's folder"]
    assert copying.print("four\n") == "one\ntwo\nthree\nfour\n"


def test_a_file_that_hangs_does_not_hold_up_the_end(tmp_path: Path) -> None:
    copying = Copying(tmp_path, tmp_path / "pipe")
    os.mkfifo(copying.target)
    thread = threading.Thread(target=copying.files.carry, daemon=True)
    thread.start()  # opening a pipe that nobody reads waits for ever
    while not copying.files._busy.locked():
        pass
    copying.files.carry(within=0.01)
    reader = os.open(copying.target, os.O_RDONLY | os.O_NONBLOCK)
    thread.join(30)
    os.close(reader)
    assert not thread.is_alive()
