"""What an administrator does to the jobs of a run on a real Slurm: the run says so, and goes on where it can."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from beds.slurm import SlurmBed
from tests.cluster.conftest import Person

pytestmark = [pytest.mark.cluster]

WAITS = """
import os, time
open(os.environ["ONWARD_CHECKPOINT_DIR"] + "/ckpt-0001.json", "w").write("{}")
while not os.path.exists(os.path.join(os.environ["HERE"], "go")):
    time.sleep(0.2)
"""


@pytest.fixture
def as_root(bed: SlurmBed, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    for key, value in bed.environment().items():
        monkeypatch.setenv(key, value)

    def run(*argv: str) -> None:
        subprocess.run(argv, check=True, capture_output=True)

    return run


def test_a_run_says_what_an_admin_did_to_its_jobs_and_goes_on(alice: Person, as_root: Callable[..., None]) -> None:
    alice.write("waits.py", WAITS.replace('os.environ["HERE"]', repr(str(alice.home))))
    run = alice.submit("--time", "10:00", "--mem", "300M", "--", "python3", "waits.py")
    shown = run.until(lambda r: r["reason"].startswith("leg 1 runs on") and len(r["legs"]) > 1, what="leg 1 at work, and its successor")
    job = shown["legs"][0]["job"]

    as_root("scontrol", "suspend", job)
    run.until(lambda r: "leg 1 is suspended on" in r["reason"], what="the suspension in the run's reason")
    as_root("scontrol", "resume", job)
    run.until(lambda r: r["reason"].startswith("leg 1 runs on"), what="the leg at work again")

    as_root("scontrol", "update", f"JobId={job}", "Requeue=1")  # Onward's jobs forbid it
    as_root("scontrol", "requeuehold", job)
    held = run.until(lambda r: "requeued and is held" in r["reason"], what="the hold in the run's reason")
    assert held["state"] == "running", "nothing has ended it"
    assert "scontrol release" in held["reason"]
    as_root("scontrol", "release", job)
    again = run.until(lambda r: r["reason"].startswith("leg 2 runs on") and len(r["legs"]) > 2, what="leg 2 at work, and its successor")

    successor = again["legs"][2]["job"]
    as_root("scancel", successor)
    run.until(lambda r: f"job {successor}, queued for leg 3, is cancelled" in r["reason"], what="the successor that was cancelled")
    alice.write("go", "")
    over = run.until_over(within=60)
    assert (over["state"], over["legs"][1]["end"]) == ("finished", "done"), (over["reason"], run.log())
