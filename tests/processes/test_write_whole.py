"""Files that are whole or not there, however many write them at once and whoever dies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onward.sdk import atomic_files
from onward.sdk.atomic_files import draft_name, draft_of, write_whole

_WRITE = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from onward.sdk.atomic_files import write_whole

os.fsync = lambda handle: None  # this is about names, not about disks
target, writer = Path(sys.argv[1]), sys.argv[2]
sys.stdin.read()  # all start together

def write(number):
    for _ in range(100):
        write_whole(target, (f"{writer}{number}" * 500).encode())

with ThreadPoolExecutor(5) as pool:
    list(pool.map(write, range(5)))
"""


def _is_whole(data: bytes) -> bool:
    return len(data) == 1000 and data == data[:2] * 500


def test_two_thousand_concurrent_writes_all_succeed_and_every_read_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "shared.json"
    write_whole(target, b"x0" * 500)
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITE, str(target), name], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in "abcd"
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.close()
        writer.stdin = None
    torn = []
    while any(writer.poll() is None for writer in writers):
        if not _is_whole(data := target.read_bytes()):
            torn.append(data)
    for writer in writers:
        _, error = writer.communicate()
        assert writer.returncode == 0, error.decode()
    assert not torn
    assert _is_whole(target.read_bytes())
    assert os.listdir(tmp_path) == ["shared.json"]


def test_processes_with_the_same_number_do_not_share_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers, or on two hosts of one shared folder."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    started = threading.Barrier(8)

    def write(number: int) -> None:
        started.wait(60)
        for _ in range(20):
            with draft_of(tmp_path / "shared", flush=False) as file:
                file.write(b"%d" % number * 100)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(set((tmp_path / "shared").read_bytes())) == 1
    assert os.listdir(tmp_path) == ["shared"]


def test_a_block_that_raises_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "spec.json"
    write_whole(target, "old")
    with pytest.raises(KeyboardInterrupt), draft_of(target) as file:
        file.write(b"half of the n")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["spec.json"]


def test_a_target_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "folder", "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_long_name_has_a_draft_too(tmp_path: Path) -> None:
    name = "ü" * 127
    write_whole(tmp_path / name, "text")
    assert os.listdir(tmp_path) == [name]


def test_drafts_of_dead_writers_are_removed_by_the_next_process_that_writes_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: dead.pid)
        left = draft_name("spec.json")
    mine = draft_name("spec.json")
    elsewhere = draft_name("spec.json").replace(atomic_files._here(), "0" * 12)
    old = draft_name("other.json").replace(atomic_files._here(), "0" * 12)
    for name in (left, mine, elsewhere, old, "notes.part", ".notes.part"):
        (tmp_path / name).write_text("half")
    os.utime(tmp_path / old, (time.time() - 2 * 86400,) * 2)
    write_whole(tmp_path / "spec.json", "text")
    assert set(os.listdir(tmp_path)) == {mine, elsewhere, "notes.part", ".notes.part", "spec.json"}


def test_the_mode_is_that_of_the_draft_from_its_first_byte(tmp_path: Path) -> None:
    with draft_of(tmp_path / "token", mode=0o600) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
