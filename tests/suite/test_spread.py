"""Tests that wait for the same part of a bed do not stand side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.takes("pair")
@pytest.mark.parametrize("number", range(3))
def test_takes(number): ...

@pytest.mark.parametrize("number", range(6))
def test_is_free(number): ...

def test_is_not_chosen(): ...
"""


def order(folder: Path, *, worker: bool) -> list[str]:
    (folder / "test_order.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    takes\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {"PYTHONPATH": str(ROOT)}
    if worker:
        env["PYTEST_XDIST_WORKER"] = "gw0"
    plugins = ("-p", "no:xdist", "-p", "tests.spread", "-c", str(folder / "pytest.ini"))
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *plugins, "-k", "not chosen", str(folder)]
    listed = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    return [line.rpartition("::test_")[2] for line in listed.stdout.splitlines() if "::" in line]


def test_tests_that_take_a_part_are_spread_among_the_others(tmp_path: Path) -> None:
    takes, free = ([f"{name}[{number}]" for number in range(count)] for name, count in (("takes", 3), ("is_free", 6)))
    assert order(tmp_path, worker=True) == [takes[0], *free[:2], takes[1], *free[2:4], takes[2], *free[4:]]
    assert order(tmp_path, worker=False) == [*takes, *free], "one after the other, they need not wait"
