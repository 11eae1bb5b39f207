"""Whether a training looked at the stop file shows in the link through which it is told it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onward.rundir.layout import LegLocal, RunDir
from onward.supervisor.stop.stop_file_looks import StopFileLooks, may_go_by_the_clock


@pytest.fixture
def local(tmp_path: Path) -> LegLocal:
    made = LegLocal(tmp_path / "leg")
    made.make()
    return made


@pytest.mark.parametrize(
    "how",
    [
        "import os, sys; os.path.exists(sys.argv[1])",
        "import os, sys; os.path.realpath(sys.argv[1])",
        "import pathlib, sys; pathlib.Path(sys.argv[1]).is_file()",
        "import sys\ntry:\n    open(sys.argv[1])\nexcept OSError:\n    pass",
        "import os, sys; os.listdir(os.path.dirname(sys.argv[1]))",
    ],
)
def test_each_way_to_look_is_noticed(local: LegLocal, how: str) -> None:
    looks = StopFileLooks(local)
    assert looks.noted, "this machine's temporary folder does not note looks (noatime?)"
    assert looks.never()
    subprocess.run([sys.executable, "-c", how, str(local.told_stop_file)], check=True)
    assert not looks.never()


def test_a_shell_that_looks_is_noticed(local: LegLocal) -> None:
    looks = StopFileLooks(local)
    subprocess.run(["sh", "-c", '[ ! -e "$0" ]', str(local.told_stop_file)], check=True)
    assert not looks.never()


def test_what_the_supervisor_writes_and_reads_itself_is_no_look(local: LegLocal) -> None:
    looks = StopFileLooks(local)
    local.stop_file.write_text("")
    assert local.stop_file.exists() and looks.never()
    assert local.told_stop_file.exists() and not looks.never(), "it is the same file"


def test_where_looks_are_not_noted_nothing_is_known(local: LegLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StopFileLooks, "_exists_through_link", lambda self: None)  # as on a file system that is mounted with noatime
    assert not StopFileLooks(local).never()


def test_without_links_the_stop_file_has_its_own_path_and_nothing_is_known(local: LegLocal) -> None:
    local.stop_link.unlink()
    assert local.told_stop_file == local.stop_file
    assert not StopFileLooks(local).never()


def test_a_link_that_vanishes_tells_nothing(local: LegLocal) -> None:
    looks = StopFileLooks(local)
    local.stop_link.unlink()
    assert not looks.never()


def test_code_that_names_the_time_of_the_jobs_end_may_go_by_it(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for folder in (run.params, run.code / "src"):
        folder.mkdir(parents=True)
    run.spec.write_text("{}")
    (run.code / "src" / "train.py").write_text("import os\n")
    assert not may_go_by_the_clock(run)
    (run.code / "src" / "train.py").write_text("import os\nleave_at = float(os.environ['ONWARD_DEADLINE']) - 60\n")
    assert may_go_by_the_clock(run)


def test_code_of_very_many_files_is_not_searched_and_may_go_by_the_clock(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.code.mkdir()
    for number in range(600):
        os.close(os.open(run.code / f"{number}.py", os.O_CREAT))
    assert may_go_by_the_clock(run)


def test_a_command_that_names_the_time_of_the_jobs_end_may_go_by_it(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.params.mkdir()
    run.spec.write_text('{"command": ["bash", "-c", "./train --until $SLURM_JOB_END_TIME"]}')
    assert may_go_by_the_clock(run)
