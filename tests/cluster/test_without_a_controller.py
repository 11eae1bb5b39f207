"""Faults that touch the whole cluster: these run alone on it, after everything else there."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from beds.slurm import SlurmBed
from tests.cluster.conftest import Person, RunOnBed
from tests.cluster.test_outlives_its_jobs import training
from tests.cluster.whole import assert_whole

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

Unbroken = Callable[[int], Path]


def test_a_submit_that_times_out_but_succeeded_gives_one_job(bed: SlurmBed, alice: Person, unbroken: Unbroken) -> None:
    out = alice.home / "weights.npz"
    bed.pause_controller()
    try:
        command = [alice.python, "-m", "onward", "submit", "--json", "--name", "once", "--time", "10:00", "--mem", "400M", "--"]
        command += ["python3", "train.py", "--epochs", "2", "--out", str(out)]
        submitting = subprocess.Popen(
            command, cwd=alice.home, env=alice.environment, user="alice", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(8)
    finally:
        bed.continue_controller()
    result, said = submitting.communicate(timeout=90)
    assert submitting.returncode == 0, said
    answer = json.loads(result)
    run = RunOnBed(person=alice, id=answer["id"], folder=Path(answer["folder"]))
    run.until_over(within=60)
    assert_whole(run, out=out, unbroken=unbroken(2))
    jobs = alice.run("sacct", "-nXP", "-u", "alice", "-S", "now-5minutes", "-o", "JobID,JobName").stdout.splitlines()
    assert len([line for line in jobs if "|once.1." in line]) == 1


def test_a_controller_that_is_down_for_two_minutes_costs_nothing(bed: SlurmBed, alice: Person, unbroken: Unbroken) -> None:
    run, out = training(alice, "--time", "2:00", epochs=46, pause=0.08)
    run.until_step(60)
    bed.stop_controller()
    try:
        time.sleep(120)
    finally:
        bed.start_controller()
    run.until_over(within=240)
    shown = assert_whole(run, out=out, unbroken=unbroken(46))
    assert {leg["end"] for leg in shown["legs"]} <= {"time_limit", "done"}  # type: ignore[attr-defined]
