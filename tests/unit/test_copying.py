"""Files are copied and hashed by several threads, piece by piece, and read once."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from onward.checkpoints import copying
from onward.checkpoints.branch import branch
from onward.checkpoints.copying import SourceChanged, Transfer, transfer
from onward.checkpoints.manifest import verify
from onward.checkpoints.publishing.publish import publish, restore
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import CheckpointName

PIECE = 4096
NAME = CheckpointName(1, 7)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE", PIECE)
    monkeypatch.setattr(copying, "_BUFFER", 1000)


def made(folder: Path, name: str, size: int) -> Transfer:
    folder.mkdir(exist_ok=True)
    source, target = folder / name, folder / f"{name}.copy"
    source.write_bytes(os.urandom(size))
    target.touch()
    return Transfer(source=source, target=target, size=size)


def tree_hash(data: bytes) -> str:
    """What the manifest promises: SHA-256 over the SHA-256 of each piece."""
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)] or [b""]
    return hashlib.sha256(b"".join(hashlib.sha256(piece).digest() for piece in pieces)).hexdigest()


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 10 * PIECE + 5])
def test_a_file_is_copied_whole_and_its_hash_is_that_of_its_pieces_hashes(tmp_path: Path, size: int) -> None:
    file = made(tmp_path, "w", size)
    assert file.target
    [hash] = transfer([file], flush=True)
    assert file.target.read_bytes() == file.source.read_bytes()
    assert hash == tree_hash(file.source.read_bytes())
    assert transfer([file], algorithm="sha256") == [hashlib.sha256(file.source.read_bytes()).hexdigest()]


def test_many_files_of_many_sizes_come_out_in_order(tmp_path: Path) -> None:
    files = [made(tmp_path, str(number), number * 1777) for number in range(30)]
    moved: list[int] = []
    hashes = transfer(files, flush=True, moved=moved.append)
    assert hashes == [tree_hash(file.source.read_bytes()) for file in files]
    assert all(file.target and file.target.read_bytes() == file.source.read_bytes() for file in files)
    assert sum(moved) == sum(file.size for file in files)


def test_progress_is_told_while_a_piece_is_copied_so_that_a_slow_copy_can_be_stopped(tmp_path: Path) -> None:
    """Otherwise a store of 20 MB/s takes ten seconds to finish pieces that nobody wants any more, at the end of a leg."""
    file = made(tmp_path, "w", 5 * copying._BUFFER)
    moved: list[int] = []

    def enough(size: int) -> None:
        moved.append(size)
        if len(moved) == 2:
            raise SourceChanged("a newer one waits")

    with pytest.raises(SourceChanged, match="a newer one waits"):
        transfer([file], algorithm="sha256", moved=enough)
    assert moved == [copying._BUFFER] * 2


def test_every_byte_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = os.preadv

    def counting(handle: int, buffers: Sequence[memoryview], at: int) -> int:
        count = real(handle, buffers, at)
        read.append(count)
        return count

    monkeypatch.setattr(os, "preadv", counting)
    source = made(tmp_path, "w", 5 * PIECE + 3).source
    publish({"w": source}, tmp_path / "store", NAME, created=1.0)
    assert sum(read) == 5 * PIECE + 3


def test_pieces_of_one_large_file_are_copied_by_several_threads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write waits until another thread writes too: one thread alone would never get through."""
    monkeypatch.setattr(copying, "_threads", lambda: 2)
    both = threading.Barrier(2)
    real = copying.write_at

    def together(handle: int, data: memoryview, at: int) -> None:
        both.wait(timeout=60)
        real(handle, data, at)

    monkeypatch.setattr(copying, "write_at", together)
    file = made(tmp_path, "w", 2 * PIECE)
    assert transfer([file], flush=True) == [tree_hash(file.source.read_bytes())]


def test_what_one_thread_meets_ends_them_all_and_is_told(tmp_path: Path) -> None:
    files = [made(tmp_path, str(number), 3 * PIECE) for number in range(10)]
    files[4].source.unlink()
    handles = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        transfer(files, flush=True)
    assert os.listdir("/proc/self/fd") == handles, "no file stays open"


def test_a_file_that_is_shorter_than_it_was_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = made(tmp_path, "w", 2 * PIECE)
    os.truncate(file.source, PIECE)
    with pytest.raises(SourceChanged, match="w changed"):
        transfer([file])


def test_damage_in_any_piece_is_found_when_restoring_and_where_it_lies(tmp_path: Path) -> None:
    source = made(tmp_path, "w", 3 * PIECE).source
    publish({"w": source}, tmp_path / "store", NAME, created=1.0)
    published = tmp_path / "store" / str(NAME)
    for piece in range(3):
        data = bytearray(source.read_bytes())
        data[piece * PIECE + 17] ^= 1
        (published / "w").write_bytes(data)
        with pytest.raises(CheckpointDamaged, match="w does not match its hash"):
            verify(published)
        with pytest.raises(CheckpointDamaged, match="w does not match its hash"):
            restore(published, tmp_path / "resume")


def test_checkpoints_of_earlier_versions_verify_restore_and_can_be_branched_from(tmp_path: Path) -> None:
    source = made(tmp_path, "w", 3 * PIECE).source
    folder = tmp_path / "old" / str(NAME)
    folder.mkdir(parents=True)
    (folder / "w").write_bytes(source.read_bytes())
    files = {"w": {"size": 3 * PIECE, "hash": hashlib.sha256(source.read_bytes()).hexdigest()}}
    fields = {"schema": 1, "leg": 1, "step": 7, "created": 1.0, "algorithm": "sha256", "made_by": "sdk", "metrics": {}, "files": files}
    (folder / "manifest.json").write_text(json.dumps(fields))
    assert verify(folder).algorithm == "sha256"
    restore(folder, tmp_path / "resume")
    assert (tmp_path / "resume" / "w").read_bytes() == source.read_bytes()
    assert branch(folder, tmp_path / "store").algorithm == "sha256"
    verify(tmp_path / "store" / str(CheckpointName(0, 7)))
    (folder / "w").write_bytes(b"x" * 3 * PIECE)
    with pytest.raises(CheckpointDamaged, match="hash"):
        verify(folder)


def test_verifying_in_place_says_how_far_it_is(tmp_path: Path) -> None:
    source = made(tmp_path, "w", 3 * PIECE).source
    publish({"w": source}, tmp_path / "store", NAME, created=1.0)
    moved: list[int] = []
    verify(tmp_path / "store" / str(NAME), moved=moved.append)
    assert len(moved) >= 3 and sum(moved) == 3 * PIECE
