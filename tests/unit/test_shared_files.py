"""What runs have alike is stored once, and each run has it as if it were its own."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from onward.rundir.root.shared_files import newest_shared, unused_files, write_shared

CONTENT = b"archive" * 1000


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / ".onward" / "supervisors"


def target(tmp_path: Path, run: str) -> Path:
    (tmp_path / run).mkdir(exist_ok=True)
    return tmp_path / run / "supervisor.pyz"


def put(tmp_path: Path, shared: Path, run: str, content: bytes = CONTENT) -> Path:
    made = target(tmp_path, run)
    write_shared(shared, content, made)
    assert made.read_bytes() == content
    return made


def test_runs_of_one_version_share_one_file_and_those_of_another_have_theirs(tmp_path: Path, shared: Path) -> None:
    first, second, other = (put(tmp_path, shared, run, content) for run, content in (("a", CONTENT), ("b", CONTENT), ("c", b"newer")))
    assert first.samefile(second) and not first.samefile(other)
    assert len(list(shared.iterdir())) == 2


def test_a_run_keeps_its_version_whatever_happens_to_the_others_and_to_what_is_shared(tmp_path: Path, shared: Path) -> None:
    kept, gone = put(tmp_path, shared, "a"), put(tmp_path, shared, "b")
    shutil.rmtree(gone.parent)
    shutil.rmtree(shared)
    assert kept.read_bytes() == CONTENT
    shutil.copytree(kept.parent, tmp_path / "copy")
    kept.parent.rename(tmp_path / "moved")
    assert (tmp_path / "copy" / kept.name).read_bytes() == (tmp_path / "moved" / kept.name).read_bytes() == CONTENT


@pytest.mark.parametrize("damage", ["other content", "shorter", "writable by others", "a link"])
def test_what_is_not_exactly_ours_is_never_given_to_a_run(tmp_path: Path, shared: Path, damage: str) -> None:
    first = put(tmp_path, shared, "a")
    [kept] = shared.iterdir()
    elsewhere = tmp_path / "elsewhere"
    if damage == "a link":
        elsewhere.write_bytes(CONTENT)
        kept.unlink()
        kept.symlink_to(elsewhere)
    elif damage == "writable by others":
        kept.chmod(0o666)
    else:
        kept.unlink()
        kept.write_bytes(b"x" * len(CONTENT) if damage == "other content" else CONTENT[:-1])
    second = put(tmp_path, shared, "b")
    assert not second.is_symlink() and not second.samefile(first)
    assert second.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("code", [errno.EPERM, errno.EXDEV, errno.EOPNOTSUPP])
def test_where_no_hard_link_can_be_made_a_run_gets_a_copy(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    assert not put(tmp_path, shared, "a").samefile(put(tmp_path, shared, "b"))


def test_a_file_with_as_many_names_as_it_can_have_makes_way_for_another(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, link = put(tmp_path, shared, "a"), os.link

    def full(source: Path, target: Path, *, follow_symlinks: bool) -> None:
        if os.stat(source).st_nlink > 1:
            raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
        link(source, target, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "link", full)
    alone, next_one = put(tmp_path, shared, "b"), put(tmp_path, shared, "c")
    assert not alone.samefile(first) and not next_one.samefile(first)
    assert next_one.stat().st_nlink == 2, "it is shared from now on"


def test_a_folder_that_cannot_be_written_to_costs_the_sharing_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where the folder should be")
    put(tmp_path, tmp_path / "file" / "supervisors", "a")


def test_only_what_no_run_has_is_unused(tmp_path: Path, shared: Path) -> None:
    used, gone = put(tmp_path, shared, "a"), put(tmp_path, shared, "b", b"older")
    assert unused_files(shared) == []
    gone.unlink()
    [unused] = unused_files(shared)
    assert unused.read_bytes() == b"older" and used.exists()
    assert unused_files(tmp_path / "nowhere") == []


def test_the_newest_is_found_if_nobody_else_can_have_written_it(tmp_path: Path, shared: Path) -> None:
    assert newest_shared(shared, ".pyz") == b""
    put(tmp_path, shared, "a", b"older")
    newer = put(tmp_path, shared, "b", b"newer")
    os.utime(newer, ns=(2**62, 2**62))
    (shared / f"{os.getuid() + 1}-0.pyz").write_bytes(b"of another user")
    (shared / f"{os.getuid()}-0.tmp").write_bytes(b"of another kind")
    assert newest_shared(shared, ".pyz") == b"newer"
    newer.chmod(0o666)
    assert newest_shared(shared, ".pyz") == b""
