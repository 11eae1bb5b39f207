"""Relative paths that are here and will not be found by the job are named at submit, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.operations.hosts.local import submitted_run
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "home")
    deep = sandbox.project / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    (deep / "train.py").write_text("x = 1\n")
    (tmp_path / "far").write_text("data")
    return sandbox


def warnings(dir: RunDir) -> list[str]:
    return read_run(dir).legs[1].warnings


def test_a_path_that_leads_too_far_up_is_named_with_its_full_path(sandbox: Sandbox, tmp_path: Path) -> None:
    far = "../../../../../../far"
    dir = sandbox.submit(cwd=sandbox.project / "a" / "b" / "c" / "d", command=("python3", "train.py", f"--data={far}"))
    (said,) = warnings(dir)
    assert said.startswith(f"the job will not find {far}: ") and said.endswith(f"write {tmp_path / 'far'} instead")
    assert submitted_run(dir).warnings == (said,)


def test_a_checkpoint_of_another_run_is_named_also_in_a_param(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, env={"ONWARD_ROOT": str(tmp_path / "project" / "runs")})
    old = sandbox.write("runs/2026-11-15_A_old/results/model.pt")
    (said,) = warnings(sandbox.submit(params={"start": str(old.relative_to(sandbox.project)), "lr": 0.1}))
    assert said.startswith("the job will not find runs/2026-11-15_A_old/results/model.pt: ") and str(old) in said


def test_what_the_job_finds_is_not_named(sandbox: Sandbox) -> None:
    sandbox.write("conf/a.yaml")
    (sandbox.folder / "data").mkdir()
    command = ("python3", "train.py", "conf/a.yaml", "--to=out", "--from", "../data", "/etc/passwd", "~/x", "..", ".", "--", "")
    dir = sandbox.submit(command=command, params={"data": "../data"})
    assert warnings(dir) == []
    assert (dir.code / "data").resolve() == sandbox.folder / "data"


def test_a_path_that_only_a_param_names_leads_where_it_led(sandbox: Sandbox) -> None:
    (sandbox.folder / "data").mkdir()
    dir = sandbox.submit(params={"data": "../data"})
    spec = read_run(dir).spec
    assert (dir.code / spec.workdir / "../data").resolve() == sandbox.folder / "data" and warnings(dir) == []


def test_of_many_some_are_named(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("node_modules/x")
    cwd = sandbox.project / "a" / "b" / "c" / "d"
    for number in range(5):
        (tmp_path / f"far{number}").write_text("")
    (said,) = warnings(sandbox.submit(cwd=cwd, command=("python3", "train.py", *(f"../../../../../../far{n}" for n in range(5)))))
    assert "far2 and 2 more: " in said and "far3" not in said


def test_code_that_runs_where_it_stands_misses_nothing(sandbox: Sandbox) -> None:
    dir = sandbox.submit(
        cwd=sandbox.project / "a" / "b" / "c" / "d", freeze=False, command=("python3", "train.py", "../../../../../../far")
    )
    assert warnings(dir) == []
