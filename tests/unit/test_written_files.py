"""What a training wrote into its working folder is shown and served; its code, and what the code links to, is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from onward.cli.runs.show import _facts
from onward.errors import InvalidInput, NotFound
from onward.operations.runs.record import inspect_run, run_record
from onward.operations.runs.written_files import written_record
from onward.rundir.files.written import WrittenFiles, written_files
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path)
    sandbox.write("lib/model.py", "x = 1\n")
    return sandbox


def wrote(dir: RunDir) -> dict[str, Any]:
    answer = written_record(dir)
    assert answer is not None
    return answer


def served(dir: RunDir) -> WrittenFiles:
    written = written_files(dir)
    assert written is not None
    return written


def names(dir: RunDir, path: str = "") -> list[str]:
    return [file.path for file in served(dir).page(path, most=100).files]


def write(dir: RunDir, name: str, text: str = "12345") -> Path:
    path = dir.code / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_code_is_not_shown_and_what_the_training_wrote_is(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    assert wrote(dir) == {"folder": str(dir.code), "count": 0, "all": True, "newest": []}
    write(dir, "out/samples.png")
    write(dir, "lib/__pycache__/model.pyc")
    answer = wrote(dir)
    assert answer["count"] == 1
    assert [(one["path"], one["bytes"]) for one in answer["newest"]] == [("out/samples.png", 5)]
    entry = run_record(inspect_run(sandbox.context, dir))
    assert dict(_facts(entry))["wrote"] == f"out/samples.png; in {dir.code}"


def test_of_many_the_newest_are_named(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    for number in range(30):
        os.utime(write(dir, f"out/{number}.bin"), (2e9 + number, 2e9 + number))
    answer = wrote(dir)
    assert (answer["count"], len(answer["newest"]), answer["newest"][0]["path"]) == (30, 20, "out/29.bin")
    entry = run_record(inspect_run(sandbox.context, dir))
    assert " and 25 more; in " in dict(_facts(entry))["wrote"]


def test_of_very_many_it_says_that_there_are_more(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    for number in range(6_000):
        (dir.code / f"{number}.bin").touch()
    answer = wrote(dir)
    assert answer["count"] <= 5_000 and not answer["all"]
    entry = run_record(inspect_run(sandbox.context, dir))
    assert f" and more than {answer['count'] - 5} more; in " in dict(_facts(entry))["wrote"]


def test_what_it_wrote_is_listed_folder_by_folder_and_page_by_page(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    assert names(dir) == []
    for name in ("b.csv", "a.csv", "out/deep/x.npy", "lib/notes.txt"):
        write(dir, name)
    (dir.code / "new").mkdir()
    assert names(dir) == ["a.csv", "b.csv", "lib", "new", "out"]
    assert names(dir, "lib") == ["lib/notes.txt"] and names(dir, "out") == ["out/deep"] and names(dir, "nowhere") == []
    first = served(dir).page(most=2)
    assert ([file.path for file in first.files], first.more) == (["a.csv", "b.csv"], 3)
    rest = served(dir).page(after="b.csv", most=2)
    assert ([file.path for file in rest.files], rest.more) == (["lib", "new"], 1)


def test_a_file_of_the_code_that_was_written_again_is_the_trainings(sandbox: Sandbox) -> None:
    sandbox.write("results.csv", "old")
    dir = sandbox.submit()
    assert names(dir) == []
    write(dir, "results.csv", "new and longer")
    write(dir, "lib/model.py", "x = 2 * 2\n")
    assert names(dir) == ["lib", "results.csv"] and names(dir, "lib") == ["lib/model.py"]
    assert wrote(dir)["count"] == 2


def test_what_it_wrote_can_be_read_and_code_cannot(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    write(dir, "out/loss.csv", "1,2")
    file, seen = served(dir).open("out/loss.csv")
    with file:
        assert (file.read(), seen.size) == (b"1,2", 3)
    for path in ("train.py", "lib/model.py", "out", "none", "lib/__pycache__/model.pyc"):
        write(dir, "lib/__pycache__/model.pyc")
        with pytest.raises(NotFound):
            served(dir).open(path)
    for path in ("../params/spec.json", "/etc/passwd", "out/../train.py", ""):
        with pytest.raises(InvalidInput):
            served(dir).open(path)


def test_links_are_neither_shown_nor_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("private")
    dir = sandbox.submit()
    write(dir, "real")
    (dir.code / "link").symlink_to(tmp_path / "secret")
    (dir.code / "folder").symlink_to(tmp_path)
    assert wrote(dir)["count"] == 1 and names(dir) == ["real"] and names(dir, "folder") == []
    for path in ("link", "folder/secret"):
        with pytest.raises(NotFound, match="is a link"):
            served(dir).open(path)
    os.rename(dir.code, tmp_path / "moved")
    dir.code.symlink_to(tmp_path / "moved")
    assert names(dir) == [] and written_record(dir) is None
    with pytest.raises(NotFound, match="is a link"):
        served(dir).open("real")


def test_where_the_code_was_not_copied_nothing_is_told(sandbox: Sandbox) -> None:
    assert written_record(sandbox.submit(freeze=False)) is None


@pytest.mark.parametrize("copy", [shutil.copy2, shutil.copy])
def test_in_a_copied_folder_code_stays_code_whatever_its_times(sandbox: Sandbox, tmp_path: Path, copy: Any) -> None:
    dir = sandbox.submit()
    write(dir, "out/loss.csv")
    copied = RunDir(shutil.copytree(dir.path, tmp_path / "elsewhere" / dir.path.name, copy_function=copy))
    os.utime(copied.code / "train.py", (2e9, 2e9))
    assert names(copied) == ["out"] and wrote(copied)["count"] == 1


def test_a_damaged_list_of_the_code_serves_nothing(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    write(dir, "out/loss.csv")
    for text in ("", "[]", '{"folder": 1, "files": {"train.py": 7}}'):
        dir.code_list.write_text(text)
        assert written_files(dir) is None
