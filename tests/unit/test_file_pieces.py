"""Files that come a piece at a time: twice, out of order, replaced meanwhile, too large, or with nowhere to go."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from onward.errors import Conflict, InvalidInput, TooLarge
from onward.rundir.files.artifacts import ArtifactFiles
from onward.rundir.files.pieces import append, gather


def test_a_file_grows_by_what_is_new_in_a_piece(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path / "top", root=tmp_path, private=True)
    assert append(files, "run/logs/a.out", 1 << 50, b"") == 0  # asked where to begin
    assert not (tmp_path / "top").exists()
    assert append(files, "run/logs/a.out", 0, b"abc") == 3
    assert append(files, "run/logs/a.out", 0, b"abc") == 3
    assert append(files, "run/logs/a.out", 1, b"bcdef") == 6
    assert append(files, "run/logs/a.out", 9, b"gap") == 6
    assert (tmp_path / "top/run/logs/a.out").read_bytes() == b"abcdef"
    assert (tmp_path / "top/run/logs/a.out").stat().st_mode & 0o777 == 0o600


def test_a_file_takes_no_more_than_it_may_and_keeps_what_it_has(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path / "top", root=tmp_path, largest=5)
    assert append(files, "a", 0, b"abcde") == 5
    with pytest.raises(TooLarge):
        append(files, "a", 5, b"f")
    assert append(files, "a", 1 << 50, b"") == 5


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/passwd", "a//b", "", "x/.part", "a\\b"])
def test_no_piece_goes_outside(tmp_path: Path, path: str) -> None:
    files = ArtifactFiles(tmp_path / "top", root=tmp_path)
    for take in (lambda: append(files, path, 0, b"x"), lambda: gather(files, path, 0, b"x", size=1, modified=1)):
        with pytest.raises(InvalidInput):
            take()
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "a").symlink_to(tmp_path / "outside")
    (tmp_path / "top" / "b").symlink_to(tmp_path)
    files = ArtifactFiles(tmp_path / "top", root=tmp_path)
    with pytest.raises(Exception, match="'a'"):
        append(files, "a", 0, b"x")
    with pytest.raises(Exception, match="'b"):
        append(files, "b/c", 0, b"x")
    with pytest.raises(Conflict):
        gather(files, "a", 0, b"x", size=1, modified=1)
    assert not (tmp_path / "outside").exists() and not (tmp_path / "c").exists()


def test_a_replaced_file_is_seen_when_it_is_whole_and_the_old_one_until_then(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path, root=tmp_path)
    old, new = b"old content", b"new and longer content"
    assert gather(files, "plots/a.png", 1 << 50, b"", size=len(old), modified=1_000) == (0, None)
    now, whole = gather(files, "plots/a.png", 0, old, size=len(old), modified=1_000)
    assert (now, whole and whole.sha256) == (len(old), hashlib.sha256(old).hexdigest())
    assert gather(files, "plots/a.png", 1 << 50, b"", size=len(old), modified=1_000) == (len(old), None)
    assert gather(files, "plots/a.png", 0, new[:9], size=len(new), modified=2_000) == (9, None)
    assert (tmp_path / "plots/a.png").read_bytes() == old
    assert [file.path for file in files.list("plots")] == ["plots/a.png"]
    assert gather(files, "plots/a.png", 1 << 50, b"", size=len(new), modified=2_000) == (9, None)  # another leg goes on from there
    assert gather(files, "plots/a.png", 0, b"x", size=30, modified=1_500)[0] == 1  # a content that nobody finishes
    now, whole = gather(files, "plots/a.png", 4, new[4:], size=len(new), modified=2_000)
    assert whole is not None and (tmp_path / "plots/a.png").read_bytes() == new
    assert (tmp_path / "plots/a.png").stat().st_mtime_ns == 2_000
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["a.png"]


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path / "top", root=tmp_path)
    _, whole = gather(files, "empty", 0, b"", size=0, modified=7)
    assert whole is not None and (tmp_path / "top" / "empty").read_bytes() == b""


def test_pieces_in_any_order_any_number_of_times_make_the_file(tmp_path: Path) -> None:
    chance = random.Random(7)
    data = chance.randbytes(5000)
    files = ArtifactFiles(tmp_path, root=tmp_path)
    at = 0
    while at < len(data):
        begin = chance.randint(0, min(at + 50, len(data)))
        at = append(files, "a", begin, data[begin : begin + chance.randint(0, 400)])
    assert (tmp_path / "a").read_bytes() == data
