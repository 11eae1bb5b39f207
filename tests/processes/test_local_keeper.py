"""The keeper, round by round: real processes, but a clock that moves only by hand."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.model.job import JobId, JobState, JobStatus
from onward.model.spec import Resources
from onward.schedulers.local import job_wrapper
from onward.schedulers.local.job_queue import LIVE, JobRecord
from onward.schedulers.local.keeper import GRACE_SECONDS, Keeper
from onward.schedulers.local.scheduler import LocalScheduler
from tests.benches import ANYTHING, LocalBench, until


class KeeperBench(LocalBench):
    """The keeper is in this process, and `submit` starts no other."""

    def __init__(self, folder: Path, *, cpus: int = 16, mem: int | None = None, gpus: tuple[str, ...] = ()) -> None:
        super().__init__(folder)
        self.scheduler = LocalScheduler(self.state, cpus=cpus, mem=mem, gpus=gpus, keeper_command=["true"])
        self.queue.make()
        self.clock = ManualClock(time.time())
        self.keepers: list[Keeper] = []
        self.new_keeper()

    def new_keeper(self) -> None:
        """As if the old one had been killed. It is kept, so that its children can be reaped."""
        self.keepers.append(Keeper(self.queue, self.clock))

    def look(self) -> None:
        self.keepers[-1].look()

    def now(self, job: JobId) -> JobStatus:
        return self.scheduler.status([job])[job]

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        def there() -> bool:
            self.look()
            status = self.now(job)
            assert status.state in states or status.state.live, f"{status}"
            return status.state in states

        until(there, what=f"{states} of job {job}")
        return self.now(job)

    def wait_for_file(self, name: str) -> Path:
        path = self.folder / name
        until(path.exists, what=name)
        return path

    def close(self) -> None:
        super().close()
        for keeper in self.keepers:
            for held in keeper._jobs.values():
                if held.child is not None:
                    held.child.wait()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[KeeperBench]:
    made = KeeperBench(tmp_path, cpus=2, mem=4096, gpus=("0", "1"))
    yield made
    made.close()


# ── places ────────────────────────────────────────────────────────────────────


def test_a_job_waits_until_there_is_room_and_says_for_what(bench: KeeperBench) -> None:
    first = bench.submit(f"touch {bench.folder}/ready; exec sleep 600", resources=Resources(cpus_per_task=1))
    second = bench.submit("sleep 600", resources=Resources(cpus_per_task=2))
    bench.look()
    assert bench.now(first).state is JobState.RUNNING
    assert (bench.now(second).state, bench.now(second).reason) == (JobState.QUEUED, "needs 2 CPUs, 1 free")
    bench.wait_for_file("ready")
    bench.scheduler.cancel([first])
    bench.wait_for(second, JobState.RUNNING)
    assert bench.now(first).state is JobState.CANCELLED


def test_a_small_job_passes_a_large_one_that_does_not_fit(bench: KeeperBench) -> None:
    bench.submit("sleep 600", resources=Resources(gpus="0"))
    large = bench.submit("sleep 600", resources=Resources(cpus_per_task=2, gpus="0"))
    small = bench.submit("sleep 600", resources=Resources(gpus="0"))
    bench.look()
    assert bench.now(large).state is JobState.QUEUED
    assert bench.now(small).state is JobState.RUNNING


def test_memory_is_not_promised_twice(bench: KeeperBench) -> None:
    bench.submit("sleep 600", resources=Resources(mem=3000))
    second = bench.submit("sleep 600", resources=Resources(mem=2000))
    bench.look()
    assert bench.now(second).reason == "needs 2000 MiB of memory, 1096 MiB free"


def test_a_gpu_is_given_to_one_job_at_a_time(bench: KeeperBench) -> None:
    report = 'echo "$CUDA_VISIBLE_DEVICES" > {}.part; mv {}.part {}; exec sleep 600'
    names = [str(bench.folder / f"gpu{number}") for number in range(3)]
    jobs = [bench.submit(report.format(name, name, name), resources=Resources(gpus="1", cpus_per_task=1)) for name in names[:2]]
    third = bench.submit("sleep 600", resources=Resources(gpus="1"))
    bench.look()
    assert {bench.wait_for_file("gpu0").read_text(), bench.wait_for_file("gpu1").read_text()} == {"0\n", "1\n"}
    assert bench.now(third).state is JobState.QUEUED
    bench.scheduler.cancel(jobs[:1])
    bench.wait_for(jobs[0], JobState.CANCELLED)
    bench.wait_for(third, JobState.RUNNING)


def test_a_gpu_stays_given_when_the_keeper_was_killed(bench: KeeperBench) -> None:
    bench.submit("sleep 600", resources=Resources(gpus="2"))
    second = bench.submit("sleep 600", resources=Resources(gpus="1"))
    bench.look()
    bench.new_keeper()
    bench.look()
    assert (bench.now(second).state, bench.now(second).reason) == (JobState.QUEUED, "needs 1 GPU, 0 free")


def test_a_job_that_asks_for_no_number_of_gpus_gets_all_of_them_alone(bench: KeeperBench) -> None:
    report = 'echo "$CUDA_VISIBLE_DEVICES" > {0}.part; mv {0}.part {0}; exec sleep 600'
    first = bench.submit(report.format(bench.folder / "seen"), resources=Resources(cpus_per_task=1))
    second, third = bench.submit("exit 0"), bench.submit("sleep 600", resources=Resources(gpus="1"))
    bench.look()
    assert bench.wait_for_file("seen").read_text() == "0,1\n"
    assert bench.now(second).reason == "gets all 2 GPUs, as no number was asked, 0 free"
    assert bench.now(third).reason == "needs 1 GPU, 0 free"
    bench.scheduler.cancel([first, third])
    bench.wait_for(first, JobState.CANCELLED)
    bench.wait_for(second, JobState.FINISHED)


def test_a_job_that_asks_for_0_gpus_sees_none_and_waits_for_none(bench: KeeperBench) -> None:
    bench.submit("sleep 600")
    job = bench.submit('test "${CUDA_VISIBLE_DEVICES-unset}" = ""', resources=Resources(gpus="0"))
    bench.wait_for(job, JobState.FINISHED)


def test_a_job_that_an_older_onward_queued_is_given_no_gpus(bench: KeeperBench) -> None:
    job = bench.submit('test "${CUDA_VISIBLE_DEVICES-unset}" = ""')
    (folder,) = (bench.state / "incoming").glob(f"{job}.*")
    body = json.loads((folder / "job.json").read_text())
    del body["request"]["all_gpus"]
    (folder / "job.json").write_text(json.dumps(body))
    bench.wait_for(job, JobState.FINISHED)


def test_submit_says_how_to_ask_where_gpus_may_keep_the_job_waiting(bench: KeeperBench) -> None:
    [words] = bench.scheduler.advice(Resources())
    assert words == (
        "it asks for no number of GPUs, so it gets all 2 GPUs of this machine, and waits while another job of the local queue has one: "
        "--gpus N asks for N of them, --gpus 0 for none"
    )
    assert not bench.scheduler.advice(Resources(gpus="0")) and not bench.scheduler.advice(Resources(gres="gpu:1"))
    one = LocalScheduler(bench.state, gpus=("0",), keeper_command=["true"])
    assert not one.advice(Resources())  # alone with the only one, as without Onward
    bench.submit("exit 0"), bench.submit("exit 0")
    assert "so it gets the only GPU of this machine" in one.advice(Resources())[0]
    assert not LocalScheduler(bench.state, gpus=(), keeper_command=["true"]).advice(Resources())


# ── starting ──────────────────────────────────────────────────────────────────


def test_a_held_job_says_for_which_it_waits(bench: KeeperBench) -> None:
    first = bench.submit("sleep 600")
    second = bench.submit("exit 0", after=first)
    assert (bench.now(second).state, bench.now(second).reason) == (JobState.HELD, f"waits for job {first}")
    bench.look()
    assert (bench.now(second).state, bench.now(second).reason) == (JobState.HELD, f"waits for job {first}")


def test_a_job_after_an_unknown_one_is_not_held(bench: KeeperBench) -> None:
    bench.wait_for(bench.submit("exit 0", after=JobId("4711")), JobState.FINISHED)


def test_a_job_knows_who_and_where_it_is_and_when_it_must_end(bench: KeeperBench) -> None:
    names = "ONWARD_JOB_ID ONWARD_JOB_NAME ONWARD_JOB_HOST ONWARD_JOB_DEADLINE ONWARD_JOB_STATE"
    job = bench.submit(
        f'for name in {names}; do echo "${{!name}}"; done > {bench.folder}/said', name="run.3.abc", resources=Resources(time=90)
    )
    status = bench.wait_for(job, JobState.FINISHED)
    id_, name, host, deadline, state = (bench.folder / "said").read_text().splitlines()
    assert (id_, name, (host,), state) == (job, "run.3.abc", status.nodes, str(bench.state))
    assert status.started is not None and float(deadline) == pytest.approx(status.started + 90, abs=0.01)


def test_a_job_starts_in_the_folder_and_with_the_umask_of_its_submitter(bench: KeeperBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.folder)
    old = os.umask(0o027)
    try:
        job = bench.submit("echo hi > made")
    finally:
        os.umask(old)
    monkeypatch.undo()
    bench.wait_for(job, JobState.FINISHED)
    assert stat.S_IMODE((bench.folder / "made").stat().st_mode) == 0o640


def test_a_job_whose_folder_is_gone_still_starts(bench: KeeperBench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.folder / "gone").mkdir()
    monkeypatch.chdir(bench.folder / "gone")
    job = bench.submit("exit 0")
    monkeypatch.undo()
    (bench.folder / "gone").rmdir()
    bench.wait_for(job, JobState.FINISHED)


def test_output_that_cannot_be_written_is_the_reason_of_the_failure(bench: KeeperBench) -> None:
    script = bench.shell("exit 0", output=bench.folder / "missing" / "out")
    status = bench.wait_for(bench.scheduler.submit(script, name="mute"), JobState.FAILED)
    assert "missing/out" in status.reason


def test_output_is_appended(bench: KeeperBench) -> None:
    output = bench.folder / "log"
    output.write_text("before\n")
    job = bench.scheduler.submit(bench.shell("echo after; echo loud >&2", output=output), name="talks")
    bench.wait_for(job, JobState.FINISHED)
    assert output.read_text() == "before\nafter\nloud\n"


def test_a_script_that_changes_after_submit_changes_nothing(bench: KeeperBench) -> None:
    script = bench.shell("exit 0")
    job = bench.scheduler.submit(script, name="frozen")
    script.write_text("exit 5")
    bench.wait_for(job, JobState.FINISHED)


# ── ends ──────────────────────────────────────────────────────────────────────


def test_death_by_a_signal_is_told_as_that(bench: KeeperBench) -> None:
    status = bench.wait_for(bench.submit("kill -SEGV $$"), JobState.FAILED)
    assert (status.exit_code, status.signal) == (None, signal.SIGSEGV)


def test_a_job_that_signals_its_whole_group_is_still_followed(bench: KeeperBench) -> None:
    status = bench.wait_for(bench.submit("kill -TERM 0; sleep 600"), JobState.FAILED)
    assert status.signal == signal.SIGTERM


def test_at_the_time_limit_a_job_is_asked_and_may_clean_up(bench: KeeperBench) -> None:
    body = f"trap 'echo bye > {bench.folder}/bye; exit 0' TERM; touch {bench.folder}/ready; while :; do sleep 0.05; done"
    job = bench.submit(body, resources=Resources(time=30))
    bench.look()
    bench.wait_for_file("ready")
    bench.clock.sleep(29)
    bench.look()
    assert bench.now(job).state is JobState.RUNNING
    bench.clock.sleep(1)
    status = bench.wait_for(job, JobState.TIMED_OUT)
    assert (bench.folder / "bye").exists()
    assert status.exit_code == 0
    assert "30 s" in status.reason


def test_the_children_of_a_shell_that_ends_when_asked_still_get_their_time(bench: KeeperBench) -> None:
    child = f"trap '' TERM; touch {bench.folder}/ready; until [ -e {bench.folder}/go ]; do sleep 0.05; done; touch {bench.folder}/saved"
    job = bench.submit(f"bash -c '{child.replace(chr(39), chr(34))}'", resources=Resources(time=30))
    bench.look()
    bench.wait_for_file("ready")
    bench.clock.sleep(30)
    bench.look()
    until(lambda: len(bench.processes(job)) <= 2, what="the end of the shell")
    for _ in range(3):
        bench.look()
    assert bench.now(job).state is JobState.RUNNING
    (bench.folder / "go").touch()
    bench.wait_for(job, JobState.TIMED_OUT)
    assert (bench.folder / "saved").exists()


def test_a_job_that_will_not_go_is_killed(bench: KeeperBench) -> None:
    job = bench.submit(f"trap '' TERM; touch {bench.folder}/ready; while :; do sleep 0.05; done", resources=Resources(time=30))
    bench.look()
    bench.wait_for_file("ready")
    bench.clock.sleep(30)
    for _ in range(3):
        bench.look()
    assert bench.now(job).state is JobState.RUNNING
    bench.clock.sleep(GRACE_SECONDS)
    bench.wait_for(job, JobState.TIMED_OUT)
    assert bench.processes(job) == []


def test_a_cancelled_job_is_cancelled_whatever_it_says(bench: KeeperBench) -> None:
    job = bench.submit(f"trap 'exit 0' TERM; touch {bench.folder}/ready; while :; do sleep 0.05; done")
    bench.look()
    bench.wait_for_file("ready")
    bench.scheduler.cancel([job])
    assert bench.wait_for(job, JobState.CANCELLED).exit_code == 0


def test_a_waiting_job_that_is_cancelled_leaves_no_mark(bench: KeeperBench) -> None:
    first = bench.submit("sleep 600")
    second = bench.submit("sleep 600", after=first)
    bench.scheduler.cancel([second])
    bench.look()
    assert bench.now(second).state is JobState.CANCELLED
    assert bench.now(second).started is None
    assert bench.queue.cancels() == []


def test_what_a_job_leaves_behind_is_gone_when_it_has_ended(bench: KeeperBench) -> None:
    body = f"""
    setsid sh -c 'echo $$ > {bench.folder}/escaped; sleep 600' &
    env -i /bin/sleep 600 &
    until [ -s {bench.folder}/escaped ]; do sleep 0.02; done
    sleep 600 &
    exit 4
    """
    job = bench.submit(body)
    assert bench.wait_for(job, JobState.FAILED).exit_code == 4
    assert bench.processes(job) == []
    escaped = int((bench.folder / "escaped").read_text())
    assert local_process_is_gone(escaped)


def local_process_is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# ── memory ────────────────────────────────────────────────────────────────────

HOLDS = """
import os, sys, time
held = bytearray(os.urandom(1)) * (int(sys.argv[1]) << 20)
for _ in range(int(sys.argv[2])):
    if not os.fork():
        time.sleep(600)
open(sys.argv[3], "w").close()
time.sleep(600)
"""


def test_a_job_over_its_memory_is_killed_with_the_figures(bench: KeeperBench) -> None:
    (bench.folder / "holds.py").write_text(HOLDS)
    body = f"exec {sys.executable} {bench.folder}/holds.py 200 0 {bench.folder}/ready"
    job = bench.submit(body, resources=Resources(mem=100))
    bench.look()
    bench.wait_for_file("ready")
    bench.clock.sleep(1)
    status = bench.wait_for(job, JobState.OUT_OF_MEMORY)
    assert "limit is 100 MiB" in status.reason
    assert int(status.reason.split()[1]) >= 200
    assert bench.processes(job) == []


def test_memory_that_processes_share_is_counted_once(bench: KeeperBench) -> None:
    (bench.folder / "holds.py").write_text(HOLDS)
    body = f"exec {sys.executable} {bench.folder}/holds.py 100 4 {bench.folder}/ready"
    job = bench.submit(body, resources=Resources(mem=250))
    bench.look()
    bench.wait_for_file("ready")
    for _ in range(3):
        bench.clock.sleep(1)
        bench.look()
    assert bench.now(job).state is JobState.RUNNING


# ── keepers that die ──────────────────────────────────────────────────────────


def test_the_next_keeper_knows_how_a_job_ended_that_it_did_not_start(bench: KeeperBench) -> None:
    job = bench.submit(f"until [ -e {bench.folder}/go ]; do sleep 0.02; done; exit 7")
    bench.look()
    bench.new_keeper()
    bench.look()
    assert bench.now(job).state is JobState.RUNNING
    (bench.folder / "go").touch()
    assert bench.wait_for(job, JobState.FAILED).exit_code == 7


def test_the_next_keeper_holds_a_job_to_its_limit(bench: KeeperBench) -> None:
    job = bench.submit(f"touch {bench.folder}/ready; exec sleep 600", resources=Resources(time=30))
    bench.look()
    bench.wait_for_file("ready")
    bench.new_keeper()
    bench.clock.sleep(30)
    bench.wait_for(job, JobState.TIMED_OUT)


def test_the_next_keeper_sees_an_end_through_that_another_began(bench: KeeperBench) -> None:
    job = bench.submit(f"trap '' TERM; touch {bench.folder}/ready; while :; do sleep 0.05; done")
    bench.look()
    bench.wait_for_file("ready")
    bench.scheduler.cancel([job])
    bench.look()
    bench.new_keeper()
    bench.look()
    assert bench.now(job).state is JobState.RUNNING
    bench.clock.sleep(GRACE_SECONDS)
    bench.wait_for(job, JobState.CANCELLED)


def test_a_job_that_vanished_while_nobody_watched_failed(bench: KeeperBench) -> None:
    job = bench.submit("sleep 600")
    bench.look()
    until(lambda: job_wrapper.claimed_by(bench.state / LIVE / f"{job}.job") is not None, what="the claim")
    bench.new_keeper()
    until(bench._jobs_are_gone)
    status = bench.wait_for(job, JobState.FAILED)
    assert status.reason == "ended while no keeper was running"
    assert status.exit_code is None


def test_a_job_that_ran_when_the_machine_went_down_lost_its_node(bench: KeeperBench) -> None:
    job = bench.submit("sleep 600")
    bench.look()
    claim = bench.state / LIVE / f"{job}.job" / "claim"
    until(claim.exists, what="the claim")
    until(bench._jobs_are_gone)
    claim.write_text(claim.read_text().splitlines()[0] + "\nanother-boot\n")
    bench.new_keeper()
    assert "the machine restarted" in bench.wait_for(job, JobState.NODE_FAILED).reason


def test_a_keeper_that_died_just_before_starting_a_job_is_made_good(bench: KeeperBench) -> None:
    job = bench.submit(f"echo once >> {bench.folder}/runs")
    [taken] = bench.queue.take()
    bench.queue.save(taken, JobRecord(state=JobState.RUNNING, started=bench.clock.now()))
    bench.new_keeper()
    bench.wait_for(job, JobState.FINISHED)
    assert (bench.folder / "runs").read_text() == "once\n"


def test_a_keeper_that_died_just_after_starting_a_job_does_not_run_it_twice(bench: KeeperBench) -> None:
    job = bench.submit(f"echo once >> {bench.folder}/runs; sleep 1; exit 6")
    [taken] = bench.queue.take()
    record = JobRecord(state=JobState.RUNNING, started=bench.clock.now())
    bench.queue.save(taken, record)
    bench.new_keeper()
    folder = bench.queue.folder(LIVE, taken)
    child = job_wrapper.start(taken, record, folder, state=bench.state, host="here", machine_gpus=())
    status = bench.wait_for(job, JobState.FAILED)
    child.wait()
    assert status.exit_code == 6
    assert (bench.folder / "runs").read_text() == "once\n"


def test_a_keeper_that_died_while_closing_a_job_is_made_good(bench: KeeperBench) -> None:
    job = bench.submit("touch never")
    [taken] = bench.queue.take()
    bench.queue.save(taken, JobRecord(state=JobState.FINISHED, exit_code=0, ended=1.0))
    bench.new_keeper()
    bench.look()
    assert bench.now(job).state is JobState.FINISHED
    assert bench.queue.unfinished() == {}


def test_a_full_disk_is_lived_through(bench: KeeperBench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.submit(f"echo once >> {bench.folder}/runs")
    real, fails = bench.queue.save, [True, False, True, False]

    def sometimes(*args: object) -> None:
        if fails and fails.pop():
            raise OSError(28, "No space left on device")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.queue, "save", sometimes)

    def over() -> bool:
        try:
            bench.look()
        except OSError:
            return False
        return bench.now(job).state is JobState.FINISHED

    until(over, what="the end of the job")
    assert (bench.folder / "runs").read_text() == "once\n"


def test_the_submitter_says_how_much_there_is(bench: KeeperBench) -> None:
    bench.submit("exit 0", resources=ANYTHING)
    noted = json.loads((bench.state / "machine.json").read_text())
    assert (noted["cpus"], noted["mem"], noted["gpus"]) == (2, 4096, ["0", "1"])
