"""What decides when a waiting job's turn comes, as Slurm and Grid Engine tell it of that one job."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import SchedulerUnavailable
from onward.model.cluster import Asked, ClusterJob
from onward.model.job import JobId, JobState
from onward.operations.hosts.local import LocalHost
from onward.operations.runs.record import inspect_run
from onward.schedulers.base import priority_of
from onward.schedulers.gridengine.priority import priority_words
from onward.schedulers.slurm.scheduler import SlurmScheduler
from onward.schedulers.slurm.snapshot import with_priorities
from tests.sandbox import Sandbox
from tests.unit.test_slurm import Programs
from tests.unit.test_slurm import programs as programs

QSTAT = """\
job-ID  prior   nurg    npprior ntckts   ppri name       user         state submit/start at     queue           slots ja-task-ID
-----------------------------------------------------------------------------------------------------------------------------------------------
    731 0.55500 0.05000 0.50000 0.25000     0 train.1.ab ada          qw    11/19/2026 10:00:00                                    1
   1731 0.10000 0.00000 0.50000 0.00000     0 other      ada          qw    11/19/2026 10:00:01                                    1
"""


# ── Slurm ─────────────────────────────────────────────────────────────────────


def test_slurm_tells_the_factors_of_this_job_and_the_users_own_shares(programs: Programs) -> None:
    programs.answer("sprio", "              731|     10023|    0|      8000|      1200|        23|       800|         0")
    programs.answer("sshare", "ml|0.359107\n physics|0.800000")
    answer = priority_of(SlurmScheduler(), JobId("731"))
    assert answer.split("; ") == [
        "10023 (fair share 8000, age 1200, size 23, partition 800)",
        "your fair share in ml is 0.359107",
        "your fair share in physics is 0.800000",
    ]
    assert programs.lines == ["sprio -h -j 731 -o %i|%Y|%N|%F|%A|%J|%P|%Q", "sshare -U -n -P -o Account,FairShare"]


@pytest.mark.parametrize("message", ["", "Unable to find jobs matching user/id(s) specified", "7310|1|0|1|1|1|1|1"])
def test_where_slurm_has_no_factors_of_the_job_nothing_is_told_and_no_more_is_asked(programs: Programs, message: str) -> None:
    programs.answer("sprio", message)
    programs.answer("sshare", "ml|0.5")
    assert priority_of(SlurmScheduler(), JobId("731")) == ""
    assert programs.calls == ["sprio"]


def test_where_sprio_is_not_there_it_is_not_known(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs.folder))
    assert priority_of(SlurmScheduler(), JobId("731")).startswith("unknown now: sprio cannot be run")


def test_in_the_picture_of_a_cluster_each_waiting_job_has_its_highest_priority(programs: Programs) -> None:
    programs.answer("sprio", "731|10023|0|8000|1200|23|800|0\n731|90|0|8|1|2|80|0\n2224|50|5|0|50|0|0|0\nodd line")
    answer = with_priorities([a_job("731"), a_job("2224_[3-5]"), a_job("9"), a_job("731_7", runs=True)])
    assert [(job.priority, job.factors) for job in answer] == [
        (10023.0, "fair share 8000, age 1200, size 23, partition 800"),
        (50.0, "age 50, nice 5"),
        (None, ""),
        (None, ""),
    ]
    assert programs.calls == ["sprio"]


def test_where_nothing_waits_or_sprio_is_not_there_no_priorities_are_told(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    running = [a_job("731", runs=True)]
    assert with_priorities(running) == running and not (programs.folder / "calls").exists()
    monkeypatch.setenv("PATH", str(programs.folder))
    assert with_priorities([a_job("731")]) == [a_job("731")]


def a_job(id: str, *, runs: bool = False) -> ClusterJob:
    state = JobState.RUNNING if runs else JobState.QUEUED
    return ClusterJob(id=JobId(id), name="n", user="ada", mine=True, state=state, queue="gpu", asked=Asked(nodes=1, cpus=1, mem=None))


# ── Grid Engine ───────────────────────────────────────────────────────────────


def test_grid_engine_tells_the_parts_of_this_jobs_priority() -> None:
    assert priority_words(QSTAT, "731") == "0.55500 (tickets 0.25000, urgency 0.05000, -p 0.50000; each 0 to 1)"


@pytest.mark.parametrize(("listed", "job"), [("", "731"), (QSTAT, "73"), ("something else\n731 running", "731")])
def test_what_grid_engine_does_not_list_is_not_told(listed: str, job: str) -> None:
    assert priority_words(listed, job) == ""


# ── a run ─────────────────────────────────────────────────────────────────────


class Telling:
    """What is added to the fake scheduler: it knows the priority of a job, or does not answer."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent
        self.asked: list[str] = []

    def __call__(self, job: JobId) -> str:
        self.asked.append(job)
        if self.silent:
            raise SchedulerUnavailable("sprio gave no answer within 10 s")
        return "10023 (age 1200)"


@pytest.mark.parametrize(("silent", "message"), [(False, "10023 (age 1200)"), (True, "unknown now: sprio gave no answer within 10 s")])
def test_a_run_that_waits_shows_the_priority_of_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: bool, message: str
) -> None:
    sandbox, telling = Sandbox(tmp_path), Telling(silent=silent)
    monkeypatch.setattr(sandbox.scheduler, "priority", telling, raising=False)
    run = sandbox.play()
    assert LocalHost(sandbox.context).show(run=str(run.dir.path))["priority"] == message
    assert len(telling.asked) == 1


def test_of_a_run_at_work_or_over_no_priority_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, telling = Sandbox(tmp_path), Telling()
    monkeypatch.setattr(sandbox.scheduler, "priority", telling, raising=False)
    run = sandbox.play().begin(1)
    assert LocalHost(sandbox.context).show(run=str(run.dir.path))["priority"] is None
    assert telling.asked == []


def test_whoever_follows_a_run_does_not_ask_for_its_priority_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, telling = Sandbox(tmp_path), Telling()
    monkeypatch.setattr(sandbox.scheduler, "priority", telling, raising=False)
    inspect_run(sandbox.context, sandbox.play().dir)
    assert telling.asked == []
