"""On real schedulers, as an ordinary user whose jobs root cancels: the run goes on, and any look at it is enough for that."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from beds.gridengine import GridEngineBed
from beds.slurm import SlurmBed
from tests.cluster.conftest import Person, RunOnBed
from tests.cluster.test_gridengine import processes_of
from tests.cluster.whole import assert_whole

pytestmark = [pytest.mark.cluster]

Unbroken = Callable[[int], Path]


def training(person: Person, *, epochs: int) -> tuple[RunOnBed, Path]:
    out = person.home / "weights.npz"
    command = ["python3", "train.py", "--epochs", str(epochs), "--pause", "0.05", "--out", str(out)]
    return person.submit("--mem", "400M", "--time", "10:00", "--", *command), out


def job_of_leg(run: RunOnBed, leg: int, *, within: float = 60) -> str:
    give_up = time.monotonic() + within
    while True:
        found = [event["job"] for event in run.events() if event["kind"] == "submitted" and event["leg"] == leg]
        if found:
            return str(found[-1])
        assert time.monotonic() < give_up, f"leg {leg} was not queued:\n{run.log()}"
        time.sleep(0.3)


def test_slurm_says_that_root_cancelled_the_leg_and_its_successor_and_the_run_goes_on(
    alice: Person, bed: SlurmBed, unbroken: Unbroken
) -> None:
    run, out = training(alice, epochs=13)
    first = run.until_step(100)["legs"][0]["job"]
    successor = job_of_leg(run, 2)
    subprocess.run(["scancel", successor, first], env={**os.environ, **bed.environment()}, check=True, timeout=60)
    run.until_over(within=240)  # looks at it now and then, and does nothing else
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    legs = shown["legs"]
    assert (legs[0]["end"], "cancelled by root" in legs[0]["reason"]) == ("cancelled", True)  # type: ignore[index]
    [gone] = [event for event in run.events() if event["kind"] == "gone"]
    assert (gone["leg"], gone["by"]) == (2, "root")


def test_grid_engine_does_not_say_that_it_was_root_so_the_run_ends_and_says_that_nobody_knows(
    ge_alice: Person, gridengine_bed: GridEngineBed
) -> None:
    """A job that is deleted while it waits leaves no record at all. The owner's own qdel looks the same, and must be obeyed."""
    run, _ = training(ge_alice, epochs=40)
    first = run.until_step(20)["legs"][0]["job"]
    env = {**os.environ, **gridengine_bed.layout.environment, "PATH": f"{gridengine_bed.path()}:{os.environ['PATH']}"}
    subprocess.run(["qdel", job_of_leg(run, 2)], env=env, check=True, timeout=60)
    for process in processes_of(first):
        os.kill(process, signal.SIGKILL)
    shown = run.until_over(within=240)
    assert shown["state"] == "cancelled", (shown["reason"], run.log())
    assert "deleted while it waited; the scheduler does not say who deleted it" in shown["reason"]
    assert "onward resume" in shown["next"]
