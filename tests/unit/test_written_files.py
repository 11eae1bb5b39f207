"""What a training wrote into its working folder is shown; its code, and what the code links to, is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from onward.cli.runs.show import _facts
from onward.operations.runs.record import inspect_run, run_record
from onward.operations.runs.written_files import written_files
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.desks import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.write("lib/model.py", "x = 1\n")
    return place


def wrote(dir: RunDir) -> dict[str, Any]:
    told = written_files(dir, read_run(dir))
    assert told is not None
    return told


def write(dir: RunDir, name: str) -> None:
    """As the training does, later than the submit: again and again where the file system's clock ticks slowly."""
    path = dir.code / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("12345")
    while os.lstat(path).st_ctime <= os.lstat(dir.spec).st_ctime:
        os.utime(path)


def test_code_is_not_shown_and_what_the_training_wrote_is(place: Place) -> None:
    dir = place.submit()
    assert wrote(dir) == {"folder": str(dir.code), "count": 0, "newest": []}
    write(dir, "out/samples.png")
    write(dir, "lib/__pycache__/model.pyc")
    told = wrote(dir)
    assert told["count"] == 1
    assert [(one["path"], one["bytes"]) for one in told["newest"]] == [("out/samples.png", 5)]
    entry = run_record(inspect_run(place.desk, dir))
    assert dict(_facts(entry))["wrote"] == f"out/samples.png; in {dir.code}"


def test_of_many_the_newest_are_named(place: Place) -> None:
    dir = place.submit()
    for number in range(30):
        write(dir, f"out/{number}.bin")
        os.utime(dir.code / "out" / f"{number}.bin", (2e9 + number, 2e9 + number))
    told = wrote(dir)
    assert (told["count"], len(told["newest"]), told["newest"][0]["path"]) == (30, 20, "out/29.bin")
    entry = run_record(inspect_run(place.desk, dir))
    assert ", … 30 files; in " in dict(_facts(entry))["wrote"]


def test_links_to_data_are_not_what_it_wrote(place: Place) -> None:
    dir = place.submit()
    write(dir, "real")
    (dir.code / "link").symlink_to(place.project)
    assert wrote(dir)["count"] == 1


def test_where_the_code_was_not_copied_or_the_run_was_nothing_is_told(place: Place, tmp_path: Path) -> None:
    here = place.submit(freeze=False)
    assert written_files(here, read_run(here)) is None
    dir = place.submit()
    copied = RunDir(shutil.copytree(dir.path, tmp_path / "elsewhere" / dir.path.name))
    os.utime(copied.spec)
    while all(os.lstat(path).st_ctime <= os.lstat(copied.spec).st_ctime for path in copied.code.rglob("*.py")):
        for path in copied.code.rglob("*.py"):
            os.utime(path)
    assert written_files(copied, read_run(copied)) is None
