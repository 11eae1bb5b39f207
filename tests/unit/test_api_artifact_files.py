"""Files of runs stay inside their folder, whatever they are called and whatever lies there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.errors import Conflict, InvalidInput, NotFound, OnwardError
from onward.tracker.runs.artifact_files import ArtifactFiles, components


@pytest.fixture
def files(tmp_path: Path) -> ArtifactFiles:
    (tmp_path / "secret").write_text("not yours")
    return ArtifactFiles(tmp_path / "files", root=tmp_path)


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_was_put_is_read_back_with_its_digest(files: ArtifactFiles) -> None:
    stored = files.put("plots/epoch=3 (best).png", [b"ab", b"", b"cd"])
    assert (stored.size, stored.sha256) == (4, hashlib.sha256(b"abcd").hexdigest())
    file, seen = files.open("plots/epoch=3 (best).png")
    with file:
        assert file.read() == b"abcd"
    assert seen.size == 4
    assert [(one.path, one.is_dir) for one in files.list()] == [("plots", True)]
    assert [one.path for one in files.list("plots")] == ["plots/epoch=3 (best).png"]


def test_a_file_is_replaced_whole(files: ArtifactFiles) -> None:
    files.put("a", [b"old"])
    files.put("a", [b"new one"])
    with files.open("a")[0] as file:
        assert file.read() == b"new one"


BAD = [
    "",
    "/etc/passwd",
    "..",
    ".",
    "../secret",
    "a/../../secret",
    "a/..",
    "a//b",
    "a/",
    "./a",
    "a\\..\\b",
    "..\\secret",
    "a#b",
    "a\x00b",
    "a\nb",
    "a\x7f",
    "a" * 201,
    "/".join(["a"] * 33),
    "a" * 3000,
    "x.part",
    "\ud800",
    "a/\u202e/b",
    "%2e%2e/x",
    "a/%2E%2e",
    "a%5Cb",
]


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_leads_elsewhere_is_refused_and_touches_nothing(files: ArtifactFiles, tmp_path: Path, name: str) -> None:
    before = everything(tmp_path)
    with pytest.raises(InvalidInput):
        files.put(name, [b"x"])
    with pytest.raises(InvalidInput):
        files.open(name)
    if name:
        with pytest.raises(InvalidInput):
            files.list(name)
    assert [path for path in everything(tmp_path) if path != "files"] == [path for path in before if path != "files"]


@pytest.mark.parametrize("name", ["50%", "..x", "x..", "...", "a b", "ä/ö", "-rf", "~root", "$(id)", "a;b", "a:b", "'\""])
def test_an_odd_but_harmless_name_is_just_a_name(files: ArtifactFiles, tmp_path: Path, name: str) -> None:
    files.put(name, [b"x"])
    with files.open(name)[0] as file:
        assert file.read() == b"x"
    assert (tmp_path / "files" / name).read_bytes() == b"x"


def test_links_are_not_followed(files: ArtifactFiles, tmp_path: Path) -> None:
    files.put("a", [b"x"])
    os.symlink(tmp_path / "secret", tmp_path / "files" / "link")
    os.symlink(tmp_path, tmp_path / "files" / "up")
    for name in ("link", "up/secret", "up"):
        with pytest.raises(OnwardError):
            files.open(name)
        with pytest.raises(OnwardError):
            files.put(name, [b"over"])
    assert (tmp_path / "secret").read_text() == "not yours"
    assert [one.path for one in files.list()] == ["a"]
    assert files.list("up") == []


def test_a_file_cannot_take_a_folders_place_nor_a_folder_a_files(files: ArtifactFiles) -> None:
    files.put("a/b", [b"x"])
    with pytest.raises(Conflict):
        files.put("a", [b"x"])
    with pytest.raises(Conflict, match="'b' is a file or a link, so it cannot contain files"):
        files.put("a/b/c", [b"x"])
    with pytest.raises(NotFound):
        files.open("a")


def test_an_upload_that_breaks_off_leaves_nothing(files: ArtifactFiles, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        files.put("a/b", broken())
    assert everything(tmp_path / "files") == ["a"]


def test_a_file_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path / "files", root=tmp_path, largest=10)
    with pytest.raises(InvalidInput, match="larger than 10"):
        files.put("a", [b"123456", b"123456"])
    assert everything(tmp_path / "files") == []


def test_a_pipe_that_somebody_put_there_does_not_block(files: ArtifactFiles, tmp_path: Path) -> None:
    files.put("a", [b"x"])
    os.mkfifo(tmp_path / "files" / "pipe")
    with pytest.raises(NotFound):
        files.open("pipe")
    assert [one.path for one in files.list()] == ["a"]


def test_what_is_not_there_is_not_found(files: ArtifactFiles) -> None:
    assert files.list() == []
    assert files.list("a/b") == []
    with pytest.raises(NotFound):
        files.open("a")
    files.put("b", [b""])
    with pytest.raises(NotFound):
        files.delete("a")
    files.delete("b")
    assert files.list() == []


def test_components_are_the_parts_between_slashes() -> None:
    assert components("a/b c/d") == ["a", "b c", "d"]
