"""What every scheduler does. `SchedulerContract` is run against the fake too: a fake that lies is worse than none."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.errors import InvalidInput, SubmitRefused
from onward.model.job import JobId, JobState
from onward.model.spec import Resources
from onward.planning.capacity import what_could_start
from onward.schedulers.base import Scheduler, end_time_of, grace_of, live_jobs_of, requeues, snapshot_of
from tests.benches import Bench, FakeBench, GridEngineBench, LocalBench, Plan, SlurmBench

DONE = Plan()
LONG = Plan(prints="started", sleeps=600)


def new_name(stem: str) -> str:
    """A cluster remembers the jobs of earlier tests."""
    return f"{stem}.{secrets.token_hex(6)}"


class SchedulerContract:
    # ── asking after jobs ─────────────────────────────────────────────────────

    def test_a_job_nobody_knows_is_absent_from_the_answer(self, bench: Bench) -> None:
        assert bench.scheduler.status([JobId("99999999")]) == {}

    def test_asking_after_no_job_is_answered_with_none(self, bench: Bench) -> None:
        assert bench.scheduler.status([]) == {}

    def test_a_submitted_job_is_known_at_once(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(LONG), name="at-once")
        status = bench.scheduler.status([job])[job]
        assert (status.id, status.name) == (job, "at-once")
        assert status.state in (JobState.QUEUED, JobState.RUNNING)

    def test_a_script_that_exits_0_is_finished(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(DONE), name="good")
        status = bench.wait_for(job, JobState.FINISHED)
        assert status.submitted is not None and status.started is not None and status.ended is not None
        assert status.submitted <= status.started <= status.ended

    def test_a_running_job_says_where_it_runs_and_since_when(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(LONG), name="there")
        status = bench.wait_for(job, JobState.RUNNING)
        assert len(status.nodes) == 1
        assert status.started is not None and status.ended is None

    def test_the_exit_code_of_a_failed_job_is_told(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(Plan(exits=3)), name="bad")
        assert bench.wait_for(job, JobState.FAILED).exit_code == 3

    def test_many_jobs_are_answered_in_one_call(self, bench: Bench) -> None:
        script = bench.script(LONG)
        jobs = [bench.scheduler.submit(script, name=f"many-{number}") for number in range(8)]
        answer = bench.scheduler.status([*jobs, JobId("99999999")])
        assert {job: status.name for job, status in answer.items()} == {job: f"many-{number}" for number, job in enumerate(jobs)}

    def test_what_waits_or_runs_is_listed_and_nothing_that_has_ended(self, bench: Bench) -> None:
        if not callable(getattr(bench.scheduler, "live", None)):
            pytest.skip("this scheduler cannot list its jobs")
        over = bench.scheduler.submit(bench.script(DONE), name="over")
        bench.wait_for(over, JobState.FINISHED)
        first = bench.scheduler.submit(bench.script(LONG), name="runs")
        second = bench.scheduler.submit(bench.script(LONG), name="waits", after=first)
        bench.wait_for(first, JobState.RUNNING)
        bench.wait_for(second, JobState.HELD)
        listed = live_jobs_of(bench.scheduler)
        assert over not in listed
        assert {job: (listed[job].name, listed[job].state) for job in (first, second)} == {
            first: ("runs", JobState.RUNNING),
            second: ("waits", JobState.HELD),
        }

    # ── finding jobs by name ──────────────────────────────────────────────────

    def test_find_knows_exactly_the_name_and_nothing_else(self, bench: Bench) -> None:
        script = bench.script(LONG)
        name = new_name("run.1")
        job = bench.scheduler.submit(script, name=name)
        for other in (f"{name}d", name[:-1], f"x{name}", name.replace(".", "-")):
            bench.scheduler.submit(script, name=other)
        assert list(bench.scheduler.find(name)) == [job]
        assert list(bench.scheduler.find(name[:-2])) == []

    def test_find_tells_jobs_of_one_name_oldest_first(self, bench: Bench) -> None:
        name = new_name("twice.2")
        first = bench.scheduler.submit(bench.script(LONG), name=name)
        second = bench.scheduler.submit(bench.script(LONG), name=name)
        assert list(bench.scheduler.find(name)) == [first, second]

    def test_find_knows_ended_jobs(self, bench: Bench) -> None:
        name = new_name("over.1")
        job = bench.scheduler.submit(bench.script(DONE), name=name)
        bench.wait_for(job, JobState.FINISHED)
        assert list(bench.scheduler.find(name)) == [job]

    # ── holding ───────────────────────────────────────────────────────────────

    def test_a_job_is_held_until_its_predecessor_has_finished(self, bench: Bench) -> None:
        first = bench.scheduler.submit(bench.script(Plan(sleeps=2)), name="first")
        second = bench.scheduler.submit(bench.script(DONE), name="second", after=first)
        assert bench.scheduler.status([second])[second].state is JobState.HELD
        ended = bench.wait_for(first, JobState.FINISHED).ended
        started = bench.wait_for(second, JobState.FINISHED).started
        assert ended is not None and started is not None and started >= ended

    def test_a_held_job_starts_also_when_its_predecessor_failed(self, bench: Bench) -> None:
        first = bench.scheduler.submit(bench.script(Plan(sleeps=1, exits=9)), name="first")
        second = bench.scheduler.submit(bench.script(DONE), name="second", after=first)
        bench.wait_for(second, JobState.FINISHED)
        assert bench.scheduler.status([first])[first].state is JobState.FAILED

    def test_a_held_job_starts_also_when_its_predecessor_was_cancelled(self, bench: Bench) -> None:
        first = bench.scheduler.submit(bench.script(LONG), name="first")
        second = bench.scheduler.submit(bench.script(DONE), name="second", after=first)
        bench.wait_for(first, JobState.RUNNING)
        bench.scheduler.cancel([first])
        bench.wait_for(second, JobState.FINISHED)

    def test_a_job_after_one_that_is_over_is_not_held(self, bench: Bench) -> None:
        first = bench.scheduler.submit(bench.script(DONE), name="first")
        bench.wait_for(first, JobState.FINISHED)
        second = bench.scheduler.submit(bench.script(DONE), name="second", after=first)
        bench.wait_for(second, JobState.FINISHED)

    # ── cancelling ────────────────────────────────────────────────────────────

    def test_a_waiting_job_that_is_cancelled_never_starts(self, bench: Bench) -> None:
        output = bench.folder / "never"
        first = bench.scheduler.submit(bench.script(LONG), name="first")
        second = bench.scheduler.submit(bench.script(DONE, output=output), name="second", after=first)
        bench.scheduler.cancel([second])
        bench.wait_for(second, JobState.CANCELLED)
        bench.scheduler.cancel([first])
        bench.wait_for(first, JobState.CANCELLED)
        assert bench.scheduler.status([second])[second].state is JobState.CANCELLED
        assert not output.exists()

    def test_a_running_job_that_is_cancelled_ends(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(LONG), name="long")
        bench.wait_for(job, JobState.RUNNING)
        bench.scheduler.cancel([job])
        assert bench.wait_for(job, JobState.CANCELLED).ended is not None

    def test_cancelling_an_ended_job_changes_nothing(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(DONE), name="over")
        bench.wait_for(job, JobState.FINISHED)
        bench.scheduler.cancel([job])
        assert bench.scheduler.status([job])[job].state is JobState.FINISHED

    def test_cancelling_an_unknown_job_is_no_error(self, bench: Bench) -> None:
        bench.scheduler.cancel([JobId("99999999")])
        bench.scheduler.cancel([])

    # ── asking for a job ──────────────────────────────────────────────────────

    def test_a_job_that_reaches_its_time_limit_is_timed_out(self, bench: Bench) -> None:
        script = bench.script(LONG, resources=Resources(time=bench.shortest_limit))
        job = bench.scheduler.submit(script, name="limited")
        bench.reach_limit(job)
        bench.wait_for(job, JobState.TIMED_OUT)

    def test_a_script_with_directives_is_accepted_and_runs(self, bench: Bench) -> None:
        resources = Resources(time=600, mem=64, cpus_per_task=1, nodes=1, ntasks=1)
        job = bench.scheduler.submit(bench.script(DONE, resources=resources), name="directed")
        bench.wait_for(job, JobState.FINISHED)

    def test_directives_are_comments_to_the_shell(self, bench: Bench) -> None:
        lines = bench.scheduler.directives(Resources(time=600, mem=64), output=bench.folder / "out")
        assert lines
        assert all(line.startswith("#") and "\n" not in line for line in lines)

    def test_output_goes_where_the_directives_said(self, bench: Bench) -> None:
        output = bench.folder / "said it.log"
        job = bench.scheduler.submit(bench.script(Plan(prints="what I have to say"), output=output), name="talks")
        bench.wait_for(job, JobState.FINISHED)
        assert output.read_text() == "what I have to say\n"

    @pytest.mark.parametrize("name", ["", "two words", "1st", "a;b", "a/b", "a\nb", "a" * 300])
    def test_a_bad_name_is_refused(self, bench: Bench, name: str) -> None:
        script = bench.script(DONE)
        with pytest.raises((SubmitRefused, InvalidInput)):
            bench.scheduler.submit(script, name=name)

    def test_the_command_of_a_dry_run_names_the_script(self, bench: Bench) -> None:
        script = bench.script(DONE)
        command = bench.scheduler.submit_command(script, name="dry")
        assert str(script) in command

    # ── what a site imposes ───────────────────────────────────────────────────

    def test_the_end_of_a_running_job_is_told_as_it_is_or_not_at_all(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(LONG, resources=Resources(time=600)), name="limited")
        started = bench.wait_for(job, JobState.RUNNING).started
        end = end_time_of(bench.scheduler, job)
        assert started is not None
        assert end is None or abs(end - started - 600) <= 60

    def test_the_grace_before_a_kill_is_some_seconds_or_not_known(self, bench: Bench) -> None:
        grace = grace_of(bench.scheduler)
        assert grace is None or grace >= 0

    def test_a_job_that_goes_back_into_the_queue_runs_again_under_its_id(self, bench: Bench) -> None:
        able = requeues(bench.scheduler)
        if able is None:
            pytest.skip("this scheduler does not put jobs back into the queue")
        began = bench.folder / "began"
        job = bench.scheduler.submit(bench.script(Plan(prints="began", sleeps=600), output=began), name="again")
        bench.wait_for(job, JobState.RUNNING)
        if able.requeue(job) is not None:
            pytest.skip("here a job goes back into the queue by its exit code: tests/cluster")
        bench.wait_for(job, JobState.QUEUED)
        able.requeued(job)

    def test_the_check_is_one_line(self, bench: Bench) -> None:
        words = bench.scheduler.check()
        assert words and "\n" not in words


class SnapshotContract:
    """Of schedulers that tell of their nodes, queues and jobs. A plugin need not."""

    def test_every_queue_names_nodes_that_are_there(self, bench: Bench) -> None:
        taken = snapshot_of(bench.scheduler)
        names = {node.name for node in taken.nodes}
        assert names and taken.queues
        assert all(names >= set(queue.nodes) >= set(queue.closed_on) for queue in taken.queues)
        assert all(node.cpus > 0 and 0 <= node.cpus_used <= node.cpus and 0 <= node.mem_used <= node.mem for node in taken.nodes)
        assert what_could_start(taken)

    def test_a_job_that_runs_is_mine_and_takes_up_a_cpu_where_it_runs(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(LONG, resources=Resources(time=600)), name="taking-room")
        bench.wait_for(job, JobState.RUNNING)
        taken = snapshot_of(bench.scheduler)
        [seen] = [one for one in taken.jobs if one.id == job]
        assert (seen.name, seen.mine, seen.user, seen.state) == ("taking-room", True, taken.user, JobState.RUNNING)
        assert seen.started is not None and seen.reason == ""
        [node] = [node for node in taken.nodes if node.name in seen.nodes]
        assert node.cpus_used >= 1
        assert seen.queue in {queue.name for queue in taken.queues if node.name in queue.nodes}

    def test_a_held_job_says_what_it_waits_for_and_is_not_in_line(self, bench: Bench) -> None:
        first = bench.scheduler.submit(bench.script(LONG), name="first")
        second = bench.scheduler.submit(bench.script(DONE), name="second", after=first)
        [seen] = [job for job in snapshot_of(bench.scheduler).jobs if job.id == second]
        assert (seen.state, seen.mine, seen.in_line, seen.nodes) == (JobState.HELD, True, False, ())
        assert "waits for" in seen.reason

    def test_an_ended_job_is_not_in_the_picture(self, bench: Bench) -> None:
        job = bench.scheduler.submit(bench.script(DONE), name="over")
        bench.wait_for(job, JobState.FINISHED)
        assert job not in {seen.id for seen in snapshot_of(bench.scheduler).jobs}


class TestEveryScheduler(SchedulerContract, SnapshotContract):
    @pytest.fixture(
        params=["fake", "local", pytest.param("slurm", marks=pytest.mark.cluster), pytest.param("gridengine", marks=pytest.mark.cluster)]
    )
    def bench(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
        folder = tmp_path
        made: Bench
        match request.param:
            case "fake":
                made = FakeBench(folder)
            case "local":
                made = LocalBench(folder)
            case "slurm":
                scheduler = slurm_scheduler(monkeypatch)
                folder = Path(tempfile.mkdtemp(prefix="onward-contract-"))  # pytest's own folder is closed to other users
                folder.chmod(0o755)
                made = SlurmBench(folder, scheduler)
            case _:
                folder = Path(tempfile.mkdtemp(prefix="onward-contract-"))
                made = GridEngineBench(folder, gridengine_scheduler(folder, monkeypatch))
        try:
            yield made
        finally:
            made.close()
            if folder != tmp_path:
                shutil.rmtree(folder, ignore_errors=True)


def slurm_scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """The adapter, looking at the bed. Where tests are meant to be complete, a missing bed fails them."""
    try:
        from beds.slurm import SlurmBed
        from onward.schedulers.slurm.scheduler import SlurmScheduler

        bed = SlurmBed()
        missing = "" if bed.takes_jobs() else "the Slurm bed is not up: python3 -m beds up slurm"
    except Exception as error:
        missing = f"the Slurm bed cannot be used: {error}"
    if missing:
        _go_without(missing)
    for key, value in bed.environment().items():
        monkeypatch.setenv(key, value)
    return SlurmScheduler()


def gridengine_scheduler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """The adapter, looking at the bed as alice: Grid Engine takes no jobs of root's."""
    try:
        from beds.gridengine import GridEngineBed
        from onward.schedulers.gridengine.scheduler import GridEngineScheduler

        bed = GridEngineBed()
        missing = "" if bed.takes_jobs() else "the Grid Engine bed is not up: python3 -m beds up gridengine"
    except Exception as error:
        missing = f"the Grid Engine bed cannot be used: {error}"
    if missing:
        shutil.rmtree(folder, ignore_errors=True)
        _go_without(missing)
    os.chown(folder, pwd.getpwnam(GridEngineBench.user).pw_uid, -1)
    for key, value in bed.environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("SGE_BINARY_PATH", str(GridEngineBench.programs(folder, Path(bed.path()))))
    monkeypatch.setenv("LOGNAME", GridEngineBench.user)
    return GridEngineScheduler()


def _go_without(missing: str) -> None:
    print(missing)
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)
