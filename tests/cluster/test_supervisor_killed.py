"""kill -9 of the supervisor alone, on schedulers that end what a job leaves behind, and on those that do not.

`ONWARD_KILLS=200 pytest -s tests/cluster/test_supervisor_killed.py` kills two hundred on each, and prints the figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from beds.gridengine import GridEngineBed
from beds.slurm_plain import plain_slurm
from tests.cluster.conftest import Person, person
from tests.cluster.kills import TRAINING, Figures, kill_supervisors

pytestmark = [pytest.mark.cluster]

KILLS = int(os.environ.get("ONWARD_KILLS", "3"))
TOGETHER = 5  # runs, to save time
MOST_TOGETHER = 2.0  # seconds


@pytest.fixture
def plain_alice(site: tuple[str, dict[str, str]], request: pytest.FixtureRequest) -> Iterator[Person]:
    """On a Slurm that follows jobs without control groups."""
    if os.geteuid() != 0:
        pytest.skip("cluster tests act as another user and need root")
    folder = Path("/var/tmp") / f"onward-plain-{os.getpid()}"
    with plain_slurm(folder) as environment, person(site, request, scheduler="slurm", environment=environment) as one:
        yield one


def kill(one: Person, *flags: str) -> Figures:
    """As many as asked for, over several runs at once."""
    count = min(TOGETHER, KILLS)
    one.write("kept.py", TRAINING)
    runs = [
        one.submit(*flags, "--name", f"kept-{number}", "--time", "10:00", "--max-legs", "1000", "--", "python3", "kept.py")
        for number in range(count)
    ]
    figures = kill_supervisors(runs, each=-(-KILLS // count), within=120 + 30 * KILLS)
    for run in runs:
        one.onward("cancel", run.id)
    print(figures)
    return figures


def must_hold(figures: Figures) -> None:
    assert figures.kills >= KILLS
    assert figures.most_together <= MOST_TOGETHER
    assert not figures.folders_removed


def test_on_slurm_with_control_groups(alice: Person) -> None:
    must_hold(kill(alice, "--mem", "500M"))


def test_on_slurm_without_control_groups(plain_alice: Person) -> None:
    must_hold(kill(plain_alice, "--mem", "500M"))


def test_on_grid_engine(ge_alice: Person) -> None:
    must_hold(kill(ge_alice))


@pytest.mark.alone
def test_on_grid_engine_that_ends_only_the_jobs_own_process_group(gridengine_bed: GridEngineBed, ge_alice: Person) -> None:
    with gridengine_bed.parameters("ENABLE_ADDGRP_KILL=false"):
        must_hold(kill(ge_alice))
