from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.rundir import mirror
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import LogsNotCarried, carry, mirror_tree


class Killed(BaseException):
    """What the test's hand does to the mirroring in the middle of a write."""


def kill_after(patch: pytest.MonkeyPatch, byte: int) -> None:
    """Let `byte` bytes through, then die: part of a chunk may have been written."""
    left = byte

    def write_some(handle: int, data: bytes) -> None:
        nonlocal left
        allowed = bytes(data)[:left]
        left -= os.write(handle, allowed)
        if len(allowed) < len(data):
            raise Killed

    patch.setattr(mirror, "write_all", write_some)


@settings(max_examples=60, deadline=None)
@given(rounds=st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=60), st.none() | st.integers(0, 80)), min_size=1, max_size=6))
def test_killed_anywhere_and_begun_again_nothing_is_lost_doubled_or_cut(rounds: list[tuple[bytes, bytes, int | None]]) -> None:
    """Each round two files grow and are mirrored, by a process that may be killed after any byte."""
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        source, target = Path(scratch, "source"), Path(scratch, "target")
        (source / "deep").mkdir(parents=True)
        patch.setattr(mirror, "_CHUNK", 16)
        files = {"a.jsonl": b"", "deep/b": b""}
        for more_a, more_b, killed_at in rounds:
            files = {"a.jsonl": files["a.jsonl"] + more_a, "deep/b": files["deep/b"] + more_b}
            for name, content in files.items():
                with (source / name).open("ab") as file:
                    file.write(content[file.tell() :])
            if killed_at is None:
                mirror_tree(source, target)
                assert all((target / name).read_bytes() == content for name, content in files.items() if content)
                continue
            with patch.context() as killing:
                kill_after(killing, killed_at)
                try:
                    mirror_tree(source, target)
                except Killed:
                    pass
            for name, content in files.items():
                there = (target / name).read_bytes() if (target / name).exists() else b""
                assert content.startswith(there)
        mirror_tree(source, target)
        assert all((target / name).read_bytes() == content for name, content in files.items() if content)
        assert mirror_tree(source, target) == 0


def test_a_mirrored_file_is_only_ever_appended_to(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "log").write_bytes(b"one\n")
    assert mirror_tree(source, target) == 4
    inode = (target / "log").stat().st_ino
    with (source / "log").open("ab") as file:
        file.write(b"two\n")
    assert mirror_tree(source, target) == 4
    assert (target / "log").read_bytes() == b"one\ntwo\n"
    assert (target / "log").stat().st_ino == inode


def test_a_source_shorter_than_its_twin_takes_nothing_away(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "log").write_bytes(b"x")
    (target / "log").write_bytes(b"longer")
    assert mirror_tree(source, target) == 0
    assert (target / "log").read_bytes() == b"longer"


def test_files_of_others_in_the_run_folder_are_not_touched(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (target / "leg-0001.out").write_bytes(b"of an earlier leg")
    (source / "leg-0002.out").write_bytes(b"new")
    mirror_tree(source, target)
    assert (target / "leg-0001.out").read_bytes() == b"of an earlier leg"


def test_supervisor_and_stager_mirroring_at_once_double_nothing(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), RunDir(tmp_path / "run")
    local.make()
    run.make()
    wanted = b"".join(b"line %d\n" % i for i in range(5000))

    def write() -> None:
        with local.log(1, "out").open("ab", buffering=0) as file:
            for start in range(0, len(wanted), 777):
                file.write(wanted[start : start + 777])

    writer = threading.Thread(target=write)

    def mirror_often() -> None:
        for _ in range(30):
            carry(local, run)

    carriers = [threading.Thread(target=mirror_often) for _ in range(3)]
    for thread in (writer, *carriers):
        thread.start()
    for thread in (writer, *carriers):
        thread.join()
    carry(local, run)
    assert run.log(1, "out").read_bytes() == wanted


def test_of_two_that_mirror_one_waits_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, run = LegLocal(tmp_path / "local"), RunDir(tmp_path / "run")
    local.make()
    inside = 0
    most = 0

    def slowly(_source: Path, _target: Path) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.02)
        inside -= 1
        return 0

    monkeypatch.setattr(mirror, "mirror_tree", slowly)
    carriers = [threading.Thread(target=carry, args=(local, run)) for _ in range(4)]
    for thread in carriers:
        thread.start()
    for thread in carriers:
        thread.join()
    assert most == 1


def test_logs_spool_and_tensorboard_reach_the_run_folder(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), RunDir(tmp_path / "run")
    local.make()
    (local.spool / "leg-0001.train-7.jsonl").write_bytes(b"{}\n")
    (local.tensorboard / "sub").mkdir()
    (local.tensorboard / "sub" / "events.out.tfevents.1").write_bytes(b"e")
    (local.checkpoints / "model.pt").write_bytes(b"not mirrored")
    carry(local, run)
    assert (run.spool / "leg-0001.train-7.jsonl").read_bytes() == b"{}\n"
    assert (run.tensorboard / "sub" / "events.out.tfevents.1").read_bytes() == b"e"
    assert not run.checkpoints.exists()


def test_a_log_that_cannot_be_written_keeps_nothing_else_back(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), RunDir(tmp_path / "run")
    local.make()
    run.make()
    for number in (1, 2):
        local.log(number, "out").write_text("said")
    (local.spool / "leg-0001.train-7.jsonl").write_text("{}\n")
    (local.tensorboard / "events").write_text("e")
    run.log(1, "out").symlink_to("/nowhere/at/all")  # in the way, for root too
    with pytest.raises(LogsNotCarried, match="leg-0001"):
        carry(local, run)
    assert (run.spool / "leg-0001.train-7.jsonl").read_text() == "{}\n"
    assert (run.tensorboard / "events").read_text() == "e"
    assert run.log(2, "out").read_text() == "said"


def test_records_that_cannot_be_written_are_not_taken_for_logs(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), RunDir(tmp_path / "run")
    local.make()
    run.make()
    local.log(1, "out").write_text("said")
    (local.spool / "leg-0001.train-7.jsonl").write_text("{}\n")
    for path in (run.log(1, "out"), run.spool / "leg-0001.train-7.jsonl"):
        path.symlink_to("/nowhere/at/all")
    with pytest.raises(FileNotFoundError, match="train-7"):
        carry(local, run)
