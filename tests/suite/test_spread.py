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
def test_pair(number): ...

@pytest.mark.takes("nodes", "pair")
def test_both(): ...

@pytest.mark.takes("nodes")
@pytest.mark.parametrize("number", range(2))
def test_nodes(number): ...

@pytest.mark.parametrize("number", range(6))
def test_free(number): ...

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


def test_tests_that_take_the_same_part_are_spread_among_the_others(tmp_path: Path) -> None:
    pair, nodes, free = ([f"{name}[{number}]" for number in range(count)] for name, count in (("pair", 3), ("nodes", 2), ("free", 6)))
    spread = order(tmp_path, worker=True)
    assert spread == [pair[0], nodes[0], *free[:2], pair[1], *free[2:3], pair[2], nodes[1], *free[3:5], "both", free[5]]
    assert order(tmp_path, worker=False) == [*pair, "both", *nodes, *free], "one after the other, they need not wait"
