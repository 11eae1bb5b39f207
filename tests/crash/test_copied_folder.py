"""A run's folder is copied while the run trains, as for a backup: nothing that is done to the copy reaches the run."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.crash.conftest import Machine
from tests.crash.test_faults_on_one_machine import counting, steps_printed

pytestmark = pytest.mark.slow


def test_what_is_done_to_a_copy_does_not_reach_the_run(machine: Machine) -> None:
    run = machine.submit(counting(steps=80, size=1000), "--time", "0:12")
    run.until(lambda shown: shown["checkpoints"])
    copy = run.folder.with_name("2026-01-01_A_copy")
    shutil.copytree(run.folder, copy, symlinks=True)
    for verb in ("cancel", "stop", "resume"):
        refused = machine.onward(verb, str(copy), check=False)
        assert refused.returncode == 5, refused.stderr
        assert f"{copy} is a copy of {run.folder}" in refused.stderr
    shown = machine.onward("show", str(copy)).stdout
    assert f"of {run.folder}" in shown
    for words in (["leg", str(copy), "2"], ["salvage", str(copy)]):
        left = subprocess.run(
            [sys.executable, str(copy / "params" / "supervisor.pyz"), *words],
            env=machine.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert left.returncode in (1, 5)
        assert "is a copy of" in left.stderr
    over = run.until_over()
    assert over["state"] == "finished"
    assert {leg["end"] for leg in over["legs"]} <= {"time_limit", "done", "again"}
    printed = steps_printed(run)
    assert sorted(set(printed)) == list(range(80))
    output = machine.onward("cancel", run.id, check=False).stderr
    assert "is finished and cannot be cancelled" in output, "the id means the run, not its copy"
