"""What keeps a failure from being forgiven: it is written down, and a second try draws the same random numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLAKY = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("case", [1, 2])
def test_fails_once(case, seed):
    drawn = Path(__file__).with_name(f"drawn-{case}")
    first = not drawn.exists()
    with drawn.open("a") as lines:
        print(seed, file=lines)
    assert not first, "it failed the first time"
"""


def run_twice(folder: Path, *options: str) -> list[subprocess.CompletedProcess[str]]:
    (folder / "test_flaky.py").write_text(FLAKY)
    (folder / "pytest.ini").write_text("[pytest]\n")
    env = {**os.environ, "ONWARD_TEST_SEED": "7", "ONWARD_FIRST_FAILURES": str(folder / "failures.tsv"), "PYTHONPATH": str(ROOT)}
    for name in [name for name in env if name.startswith("PYTEST_")]:
        del env[name]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-c", str(folder / "pytest.ini"), *options, str(folder)]
    return [subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True) for _ in range(2)]


def test_every_failure_is_written_down_once_with_its_reason(tmp_path: Path) -> None:
    first, second = run_twice(tmp_path, "-n", "2")
    assert (first.returncode, second.returncode) == (1, 0), first.stdout + second.stdout
    lines = sorted(line.split("\t") for line in (tmp_path / "failures.tsv").read_text().splitlines())
    assert [(name.rpartition("::")[2], when) for name, when, _ in lines] == [("test_fails_once[1]", "call"), ("test_fails_once[2]", "call")]
    assert all("it failed the first time" in reason for *_, reason in lines)


def test_a_second_try_draws_the_same_seed_and_another_test_draws_another(tmp_path: Path) -> None:
    run_twice(tmp_path)
    one, two = ((tmp_path / f"drawn-{case}").read_text().split() for case in (1, 2))
    assert one[0] == one[1] and two[0] == two[1] and one[0] != two[0]
