"""On real clusters that allow one submitted job: the next leg cannot wait in the queue, and the run goes on all the same."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from beds.gridengine import GridEngineBed
from beds.slurm import SlurmBed
from beds.slurm_accounts import Accounts
from onward.model.job import JobId
from onward.schedulers.base import end_time_of, grace_of
from onward.schedulers.slurm.scheduler import SlurmScheduler
from tests.benches import until
from tests.cluster.conftest import Person

pytestmark = [pytest.mark.cluster]

# Each leg saves two checkpoints and asks to be run again; the fourth finishes.
LEGS = """
import json, os, sys, time
write, read = os.environ["ONWARD_CHECKPOINT_DIR"], os.environ.get("ONWARD_RESUME_DIR")
first = max(int(name[5:9]) for name in os.listdir(read) if name.startswith("ckpt-")) + 1 if read else 0
for step in range(first, first + 2):
    time.sleep(0.2)
    with open(f"{write}/ckpt-{step:04d}.json", "w") as file:
        json.dump({"step": step}, file)
time.sleep(float(sys.argv[1]))
sys.exit(0 if first >= 6 else 75)
"""


@pytest.fixture
def one_job(bed: SlurmBed, bob: Person) -> Iterator[Person]:
    """Bob, who may have one job submitted."""
    accounts = Accounts(bed.environment())
    until(lambda: not _jobs(bed, bob.user), what="the end of the jobs of the test before")
    accounts.limit_jobs(bob.user, 1)
    try:
        yield bob
    finally:
        accounts.limit_jobs(bob.user, None)


def _jobs(bed: SlurmBed, user: str) -> str:
    """Those that Slurm still counts, also while they are completing."""
    command = ["squeue", "--noheader", f"--user={user}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **bed.environment()}).stdout


@pytest.mark.takes("bob")
def test_a_run_goes_on_through_its_legs_where_only_one_job_may_be_submitted(one_job: Person) -> None:
    one_job.write("legs.py", LEGS)
    run = one_job.submit("--time", "10:00", "--mem", "300M", "--", "python3", "legs.py", "0")
    shown = run.until_over(within=240)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert [leg["end"] for leg in shown["legs"]] == ["again", "again", "again", "done"]
    assert len({leg["job"] for leg in shown["legs"]}) == 1, "each leg is the same job, put back into the queue"
    assert [leg["resumed_step"] for leg in shown["legs"]] == [None, 1, 3, 5]
    assert run.jobs_left() == []
    requeue = subprocess.run(["scontrol", "-o", "show", "job", shown["legs"][0]["job"]], capture_output=True, text=True, check=True)
    assert " Requeue=0 " in requeue.stdout, "Slurm must not restart the job by itself"


@pytest.mark.takes("bob")
def test_the_owner_is_told_at_submit_that_only_one_job_may_be_submitted(one_job: Person) -> None:
    one_job.write("legs.py", LEGS)
    run = one_job.submit("--time", "10:00", "--mem", "300M", "--", "python3", "legs.py", "60")
    [entries] = [event["text"] for event in run.events() if event["kind"] == "warned"]
    assert "MaxSubmitJobs" in entries and "puts its own job back into the queue" in entries
    shown = run.until(lambda r: "waits for a place" in r["reason"], what="the limit in the run's reason")
    assert shown["state"] == "running"


def test_a_time_limit_that_an_admin_moved_is_noticed_and_the_grace_of_the_site_is_known(
    bed: SlurmBed, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in bed.environment().items():
        monkeypatch.setenv(key, value)
    job = JobId(alice.run("sbatch", "--parsable", "-t", "10", "-p", "spot", "-o", "/dev/null", "--wrap", "sleep 300").stdout.strip())
    until(lambda: end_time_of(SlurmScheduler(), job) is not None, what="the job's end")
    before = end_time_of(SlurmScheduler(), job)
    subprocess.run(["scontrol", "update", f"JobId={job}", "TimeLimit=25"], check=True)
    after = end_time_of(SlurmScheduler(), job)
    alice.run("scancel", job)
    assert before and after and 14 * 60 < after - before < 16 * 60
    monkeypatch.setenv("SLURM_JOB_PARTITION", "spot")
    assert grace_of(SlurmScheduler()) == 3.0, "no GraceTime, and the bed's KillWait"


@pytest.fixture
def one_ge_job(gridengine_bed: GridEngineBed, ge_alice: Person, tmp_path: Path) -> Iterator[Person]:
    """Alice on a Grid Engine where everybody may have one job: its limit holds for all users, so this test runs alone."""
    limit_ge_jobs(gridengine_bed, tmp_path, 1)
    try:
        yield ge_alice
    finally:
        limit_ge_jobs(gridengine_bed, tmp_path, 0)


def limit_ge_jobs(bed: GridEngineBed, folder: Path, most: int) -> None:
    environment = {**bed.environment(), "PATH": f"{bed.path()}:/usr/bin:/bin"}
    shown = subprocess.run(["qconf", "-sconf", "global"], env=environment, capture_output=True, text=True, check=True).stdout
    lines = [f"max_u_jobs {most}" if line.startswith("max_u_jobs") else line for line in shown.splitlines() if not line.startswith("#")]
    (folder / "global").write_text("\n".join(lines) + "\n")
    subprocess.run(["qconf", "-Mconf", str(folder / "global")], env=environment, capture_output=True, check=True)


@pytest.mark.alone
def test_a_grid_engine_run_goes_on_where_only_one_job_may_be_submitted(one_ge_job: Person) -> None:
    one_ge_job.write("legs.py", LEGS)
    run = one_ge_job.submit("--time", "10:00", "--mem", "300M", "--", "python3", "legs.py", "0")
    shown = run.until_over(within=240)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert [leg["end"] for leg in shown["legs"]] == ["again", "again", "again", "done"]
    assert len({leg["job"] for leg in shown["legs"]}) == 1, "each leg is the same job, put back into the queue"
    assert run.jobs_left() == []
