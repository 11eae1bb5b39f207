"""Spools are read in bounded pieces, however long they or their lines are."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from onward.tracker.ingest.folders import spool_positions
from onward.tracker.ingest.folders.spool_positions import Position, SpoolPiece, read_piece
from onward.tracker.store import Tracker
from tests.unit.test_tracker_files import NOW, Folder


def pieces(path: Path, *, piece: int, longest: int) -> list[SpoolPiece]:
    found: list[SpoolPiece] = []
    at = Position()
    while True:
        one = read_piece(path.parent, path, at, piece=piece, longest=longest)
        assert one is not None
        found.append(one)
        at = Position(offset=at.offset + one.used, size=one.size, head=one.head)
        if not one.more:
            return found


@pytest.mark.parametrize("piece", [7, 16, 64, 4096])
def test_all_lines_come_once_whatever_the_size_of_a_piece(tmp_path: Path, piece: int) -> None:
    lines = [b"x" * (n % 40) + b"\n" for n in range(100)]
    path = tmp_path / "spool"
    path.write_bytes(b"".join(lines) + b"torn")
    assert b"".join(one.lines for one in pieces(path, piece=piece, longest=1000)) == b"".join(lines)


@pytest.mark.parametrize("piece", [7, 16, 64, 4096])
def test_a_line_that_is_too_long_is_passed_over_and_the_next_is_read(tmp_path: Path, piece: int) -> None:
    path = tmp_path / "spool"
    path.write_bytes(b"first\n" + b"y" * 5000 + b"\nlast\n")
    found = pieces(path, piece=piece, longest=100)
    if piece < 5000:
        assert sum(one.skipped for one in found) == 5001
        assert b"".join(one.lines for one in found) == b"first\nlast\n"
    assert sum(one.used for one in found) == path.stat().st_size


def test_a_line_that_is_too_long_and_not_whole_yet_waits(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    path.write_bytes(b"y" * 5000)
    (one,) = pieces(path, piece=64, longest=100)
    assert (one.used, one.more) == (0, False)


def test_a_long_line_is_told_of_and_what_follows_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_positions.read_piece, "__kwdefaults__", {"piece": 256, "longest": 1000})
    root = tmp_path / "runs"
    root.mkdir()
    folder = Folder(root)
    folder.begin(1)
    folder.log(1, 1, 2)
    with folder.path(1).open("a") as file:
        file.write('{"n": 2, "text": "' + "y" * 5000 + '"}\n')
    folder.log(1, 3, start=3)
    with Tracker.open(tmp_path / "onward.db") as tracker:
        looked = tracker.files.look([root])
        assert [point.step for point in tracker.series.points("k3x9q2m7", "loss")] == [1, 2, 3]
        assert looked.problems == [f"{folder.path(1)}: 1 lines were ignored: a line of 5,021 bytes is too long for a record"]
        assert tracker.files.look([root]).changed == 0


def test_memory_does_not_grow_with_a_spool_of_wide_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_positions.read_piece, "__kwdefaults__", {"piece": 1 << 17, "longest": 1 << 20})
    most = []
    with Tracker.open(tmp_path / "onward.db") as tracker:
        for count in (150, 600):
            root = tmp_path / f"runs-{count}"
            root.mkdir()
            folder = Folder(root, id=f"wide{count:04d}")
            folder.begin(1)
            with folder.path(1).open("w") as file:
                for n in range(count):
                    metrics = {f"layer/{i}": n + i / 7 for i in range(300)}
                    file.write(json.dumps({"n": n, "t": NOW + n, "s": n, "m": metrics}) + "\n")
            tracemalloc.start()
            assert tracker.files.look([root]).points == 300 * count
            most.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert most[1] < 1.3 * most[0]
