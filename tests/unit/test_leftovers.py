"""What killed submits leave behind is swept away, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from onward.operations.repair import killed_submits
from onward.operations.repair.tend import tend
from onward.operations.submit import arriving_code
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hours from now; and for what arrived, two days."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * 86400)


def half(sandbox: Sandbox, name: str = "2026-11-15_A_kn-0") -> RunDir:
    dir = RunDir(sandbox.root / name)
    dir.make()
    (dir.code / "train.py").write_text("print()")
    dir.environment.write_text("{}")
    return dir


def test_a_half_made_folder_is_removed_when_it_is_old(sandbox: Sandbox, later: None) -> None:
    dir = half(sandbox)
    (sandbox.root / ".2026-11-15_B").mkdir()
    arrived = arriving_code.arrival_folder(sandbox.root, "abcdefgh")
    arrived.mkdir(parents=True)
    done = tend(sandbox.context)
    assert done.acted == [f"{dir.path}: removed, left by a submit that was killed"]
    assert done.problems == []
    assert sandbox.folders() == [".arriving"]
    assert not arrived.exists()
    assert tend(sandbox.context).acted == []


def test_one_that_somebody_may_be_at_stays(sandbox: Sandbox) -> None:
    dir = half(sandbox)
    arrived = arriving_code.arrival_folder(sandbox.root, "abcdefgh")
    arrived.mkdir(parents=True)
    assert tend(sandbox.context).acted == []
    assert dir.path.exists() and arrived.exists()


@pytest.mark.parametrize(
    "name", ["journal/desk-1.jsonl", "logs/leg-0001.out", "params/leg-0001.sh", "results/checkpoints/w.bin", "params/done.json"]
)
def test_what_holds_something_of_a_run_stays(sandbox: Sandbox, later: None, name: str) -> None:
    dir = half(sandbox)
    (dir.path / name).write_text("x")
    assert tend(sandbox.context).acted == []
    assert dir.path.exists()


def test_runs_and_other_peoples_folders_stay(sandbox: Sandbox, later: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sandbox.play()
    dir = half(sandbox, "2026-11-15_C_theirs")
    (sandbox.root / "notes").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    killed_submits.sweep_killed_submits(sandbox.root)
    assert run.dir.path.exists() and dir.path.exists() and (sandbox.root / "notes").exists()


def test_a_root_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert killed_submits.sweep_killed_submits(tmp_path / "none") == []
