from __future__ import annotations

from pathlib import Path

import pytest

from onward.pipelines.benchmarks.growing_file import GrowingFile


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    growing = GrowingFile(path)
    assert list(growing.lines()) == []
    path.write_text("one\ntw")
    assert list(growing.lines()) == ["one"]
    path.write_text("one\ntwo\n")
    assert list(growing.lines()) == ["two"]
    assert list(growing.lines()) == []


def test_however_much_has_come_it_is_read_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.rundir.files.growing._PIECE", 32)
    monkeypatch.setattr("onward.pipelines.benchmarks.growing_file._LONGEST", 32)
    path = tmp_path / "out"
    path.touch()
    growing = GrowingFile(path)
    wanted = [f"line {number}" for number in range(100)]
    path.write_text("".join(f"{line}\n" for line in wanted) + "#" * 100 + "\nend\nhalf")
    found = list(growing.lines())
    assert found[:100] == wanted and found[-1] == "end"
    assert "".join(found[100:-1]) == "#" * 100 and max(map(len, found)) <= 32
