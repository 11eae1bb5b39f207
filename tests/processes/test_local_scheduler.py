"""The local queue as its users have it: a keeper process that comes, goes and may be killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipapp
from collections.abc import Iterator
from pathlib import Path

import pytest

import onward
from onward.errors import InvalidInput, SchedulerUnavailable, SubmitRefused, SubmitUnclear
from onward.model.job import Allocation, JobId, JobState
from onward.model.spec import Resources
from onward.schedulers.local.keeper_launch import take_lock
from onward.schedulers.local.scheduler import LocalScheduler, default_state
from tests.benches import LocalBench, until

PACKAGE = Path(onward.__file__).parent


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path)
    yield made
    made.close()


def waits_then(bench: LocalBench, last: str) -> str:
    return f"until [ -e {bench.folder}/go ]; do sleep 0.02; done; {last}"


def python(code: str, *args: object) -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{code}", *map(str, args)]


SUBMIT = """
import time
from pathlib import Path
from onward.schedulers.local.scheduler import LocalScheduler
state, script, name, count = sys.argv[1:]
scheduler = LocalScheduler(Path(state), cpus=16)
print(*[scheduler.submit(Path(script), name=f"{name}-{number}") for number in range(int(count))], flush=True)
"""


# ── the keeper comes and goes ─────────────────────────────────────────────────


def test_killing_the_keeper_harms_no_job_and_the_exit_code_is_known(bench: LocalBench) -> None:
    job = bench.submit(waits_then(bench, "exit 7"))
    bench.wait_for(job, JobState.RUNNING)
    killed = bench.kill_keeper()
    assert bench.scheduler.status([job])[job].state is JobState.RUNNING
    until(lambda: bench.keeper() is not None, what="a new keeper")
    assert bench.keeper() != killed
    (bench.folder / "go").touch()
    assert bench.wait_for_end(job).exit_code == 7


def test_a_job_that_ends_while_no_keeper_runs_is_known_by_its_exit_code(bench: LocalBench) -> None:
    job = bench.submit(waits_then(bench, "exit 8"))
    bench.wait_for(job, JobState.RUNNING)
    until(lambda: bench.processes(job) != [], what="the job's processes")
    bench.kill_keeper()
    (bench.folder / "go").touch()
    until(lambda: bench.processes(job) == [], what="the job's end")
    assert bench.wait_for_end(job).exit_code == 8


def test_a_time_limit_holds_also_when_the_keeper_was_killed(bench: LocalBench) -> None:
    job = bench.submit("sleep 600", resources=Resources(time=1))
    bench.wait_for(job, JobState.RUNNING)
    bench.kill_keeper()
    assert bench.wait_for_end(job).state is JobState.TIMED_OUT
    assert bench.processes(job) == []


@pytest.mark.parametrize("call", ["submit", "find", "cancel"])
def test_any_call_starts_a_new_keeper_where_jobs_are_left(bench: LocalBench, call: str) -> None:
    job = bench.submit("sleep 600")
    bench.wait_for(job, JobState.RUNNING)
    bench.kill_keeper()
    match call:
        case "submit":
            bench.submit("exit 0")
        case "find":
            bench.scheduler.find("job")
        case _:
            bench.scheduler.cancel([JobId("99")])
    until(lambda: bench.keeper() is not None, what="a new keeper")


def test_the_keeper_leaves_when_nothing_is_left_to_do(bench: LocalBench) -> None:
    job = bench.submit("sleep 0")
    bench.wait_for(job, JobState.FINISHED)
    until(lambda: bench.keeper() is None, what="the keeper's leave")
    assert bench.processes() == []
    assert bench.scheduler.status([job])[job].state is JobState.FINISHED
    assert bench.keeper() is None  # asking after ended jobs needs none
    bench.wait_for(bench.submit("exit 0"), JobState.FINISHED)


def test_the_keeper_leaves_when_the_queue_is_deleted(bench: LocalBench) -> None:
    job = bench.submit("sleep 600")
    bench.wait_for(job, JobState.RUNNING)
    until(lambda: bench.keeper() is not None, what="a keeper")
    keeper = bench.keeper()
    moved = bench.state.with_name("moved")
    bench.state.rename(moved)
    try:
        until(lambda: keeper is not None and not keeper.alive, what="the keeper's leave")
    finally:
        moved.rename(bench.state)


def test_only_one_keeper_runs_however_many_ask_for_one(bench: LocalBench) -> None:
    job = bench.submit("sleep 600")
    bench.wait_for(job, JobState.RUNNING)
    lock = take_lock(bench.state / "keeper.lock")
    assert lock is None
    second = subprocess.run(
        [sys.executable, "-m", "onward.schedulers.local.keeper", str(bench.state)],
        env={"PYTHONPATH": str(PACKAGE.parent)},
        check=False,
        timeout=60,
    )
    assert second.returncode == 0


def test_a_keeper_that_cannot_start_leaves_the_submit_unclear_and_the_job_found(bench: LocalBench) -> None:
    broken = LocalScheduler(bench.state, cpus=16, keeper_command=["false"])
    with pytest.raises(SubmitUnclear, match="is stored"):
        broken.submit(bench.shell("exit 0"), name="stored.1.x")
    with pytest.raises(SchedulerUnavailable):
        broken.find("stored.1.x")
    [job] = bench.scheduler.find("stored.1.x")
    bench.wait_for(job, JobState.FINISHED)


def test_the_keeper_runs_from_an_archive_too(bench: LocalBench, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source / "onward", ignore=shutil.ignore_patterns("__pycache__"))
    keeps = "from onward.schedulers.local.keeper import main\nraise SystemExit(main(sys.argv[2:]))"
    (source / "__main__.py").write_text(
        f"import sys\nif sys.argv[1] == 'keeper':\n    {keeps.replace(chr(10), chr(10) + '    ')}\nsys.argv.pop(0)\n{SUBMIT}"
    )
    archive = tmp_path / "supervisor.pyz"
    zipapp.create_archive(source, archive)
    script = bench.shell("exit 3")
    done = subprocess.run(
        [sys.executable, str(archive), "submit", str(bench.state), str(script), "packed", "1"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": os.environ["PATH"]},
        cwd="/",
    )
    until(lambda: bench.keeper() is not None, what="a keeper")
    keeper = bench.keeper()
    assert keeper is not None
    assert f"{archive}\0keeper\0{bench.state}" in Path(f"/proc/{keeper.pid}/cmdline").read_text()
    assert bench.wait_for_end(JobId(done.stdout.strip())).exit_code == 3


# ── submitters come and go ────────────────────────────────────────────────────


def test_a_job_goes_on_when_the_shell_that_submitted_it_is_killed(bench: LocalBench) -> None:
    script = bench.shell(waits_then(bench, "exit 5"))
    shell = subprocess.Popen(
        python(SUBMIT + "time.sleep(600)", bench.state, script, "left", 1), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert shell.stdout is not None
    job = JobId(shell.stdout.readline().strip())
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    shell.stdout.close()
    (bench.folder / "go").touch()
    assert bench.wait_for_end(job).exit_code == 5


def test_submits_at_once_from_several_processes_get_numbers_of_their_own_and_all_run(bench: LocalBench) -> None:
    script = bench.shell(f'touch {bench.folder}/ran-"$ONWARD_JOB_NAME"')
    submitters = [
        subprocess.Popen(python(SUBMIT, bench.state, script, f"at-once-{number}", 5), stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    jobs = [JobId(id_) for submitter in submitters for id_ in submitter.communicate(timeout=60)[0].split()]
    assert len(jobs) == len(set(jobs)) == 20
    for job in jobs:
        bench.wait_for(job, JobState.FINISHED)
    assert len(list(bench.folder.glob("ran-at-once-*"))) == 20


def test_no_secret_of_the_submitter_reaches_the_job_or_the_queue(bench: LocalBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "s3cr3t-value")
    job = bench.submit(f"env > {bench.folder}/environment; sleep 600")
    until(lambda: (bench.folder / "environment").exists() and bench.keeper() is not None, what="the job and its keeper")
    keeper = bench.keeper()
    assert keeper is not None
    until(lambda: "ONWARD_JOB_ID" in (bench.folder / "environment").read_text(), what="the job's environment")
    assert "s3cr3t" not in (bench.folder / "environment").read_text()
    assert b"s3cr3t" not in Path(f"/proc/{keeper.pid}/environ").read_bytes()
    assert not [path for path in bench.state.rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]
    bench.scheduler.cancel([job])


def test_signals_that_the_submitter_ignores_end_a_job_all_the_same(bench: LocalBench) -> None:
    script = bench.shell("kill -INT $$; exit 1")
    ignores = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = subprocess.run(
        python(ignores + SUBMIT, bench.state, script, "ignores", 1), capture_output=True, text=True, check=True, timeout=60
    )
    assert bench.wait_for_end(JobId(done.stdout.strip())).signal == signal.SIGINT


# ── from inside a job ─────────────────────────────────────────────────────────

INSIDE = """
from pathlib import Path
from onward.model.job import JobId
from onward.schedulers.local.scheduler import LocalScheduler
scheduler = LocalScheduler()
own = scheduler.allocation()
next = scheduler.submit(Path(sys.argv[1]), name="next", after=own.job)
print(own.job, *own.hosts, own.deadline is not None, next, scheduler.status([next])[next].state)
"""


def test_a_job_finds_its_own_queue_and_hands_over_to_a_successor(bench: LocalBench) -> None:
    successor = bench.shell("exit 0")
    (bench.folder / "inside.py").write_text(python(INSIDE)[2])
    body = f"{sys.executable} {bench.folder}/inside.py {successor} > {bench.folder}/said"
    job = bench.submit(body, resources=Resources(time=600))
    status = bench.wait_for(job, JobState.FINISHED)
    own, host, limited, following, state = (bench.folder / "said").read_text().split()
    assert (own, (host,), limited, state) == (job, status.nodes, "True", "held")
    assert (bench.wait_for(JobId(following), JobState.FINISHED).started or 0) >= (status.ended or 0)


def test_a_job_can_ask_for_what_its_submitter_said_there_is(bench: LocalBench) -> None:
    successor = bench.shell("exit 0", resources=Resources(cpus_per_task=16))
    (bench.folder / "inside.py").write_text(python(INSIDE)[2])
    job = bench.submit(f"{sys.executable} {bench.folder}/inside.py {successor}")
    bench.wait_for(job, JobState.FINISHED)


def test_allocation_is_read_from_the_job_environment(bench: LocalBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"ID": "12", "HOST": "here", "DEADLINE": "1700000000.500", "GPUS": "0,3"}.items():
        monkeypatch.setenv(f"ONWARD_JOB_{key}", value)
    assert bench.scheduler.allocation() == Allocation(job=JobId("12"), hosts=("here",), deadline=1700000000.5, gpus=("0", "3"))
    monkeypatch.delenv("ONWARD_JOB_DEADLINE")
    monkeypatch.setenv("ONWARD_JOB_GPUS", "")
    assert bench.scheduler.allocation() == Allocation(job=JobId("12"), hosts=("here",), deadline=None)


def test_there_is_no_allocation_outside_a_job(bench: LocalBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONWARD_JOB_ID", raising=False)
    with pytest.raises(InvalidInput, match="not inside a job"):
        bench.scheduler.allocation()


# ── refusals and words ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        (Resources(cpus_per_task=9, ntasks=2), "18 CPUs, but this machine has 16"),
        (Resources(mem=10**9), "1000000000 MiB of memory, but this machine has"),
        (Resources(gpus="1"), "1 GPU, but this machine has 0"),
    ],
)
def test_more_than_the_machine_has_is_refused_with_both_figures(bench: LocalBench, resources: Resources, words: str) -> None:
    with pytest.raises(SubmitRefused, match=words):
        bench.submit("exit 0", resources=resources)
    assert bench.scheduler.find("job") == []


def test_a_script_that_is_not_there_is_refused(bench: LocalBench) -> None:
    with pytest.raises(SubmitRefused, match="cannot be read"):
        bench.scheduler.submit(bench.folder / "none.sh", name="none")


def test_a_directive_of_another_scheduler_is_no_directive_but_a_wrong_one_is_refused(bench: LocalBench) -> None:
    script = bench.shell("exit 0")
    script.write_text("#!/bin/bash\n#SBATCH --mem=lots\n#ONWARD --mem=lots\n")
    with pytest.raises(SubmitRefused, match="'lots' is not a memory size"):
        bench.scheduler.submit(script, name="wrong")


def test_a_queue_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SchedulerUnavailable, match="cannot be used"):
        LocalScheduler(tmp_path / "file" / "state").check()


def test_a_queue_that_cannot_be_made_refuses_a_job_and_names_the_variable_to_set(bench: LocalBench, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SubmitRefused, match="cannot be created: Not a directory") as caught:
        LocalScheduler(tmp_path / "file" / "state").submit(bench.shell("exit 0"), name="refused")
    assert "ONWARD_STATE_DIR" in caught.value.hint


def test_the_check_tells_sizes_and_jobs(tmp_path: Path) -> None:
    bench = LocalBench(tmp_path, cpus=2, mem=23 * 1024)
    try:
        job = bench.submit("sleep 600")
        bench.submit("exit 0", after=job)
        bench.wait_for(job, JobState.RUNNING)
        assert bench.scheduler.check().endswith(": 2 CPUs, 23 GiB, 0 GPUs, 1 running, 1 waiting")
    finally:
        bench.close()


def test_reading_an_untouched_queue_makes_nothing(bench: LocalBench) -> None:
    assert bench.scheduler.status([JobId("1")]) == {}
    assert bench.scheduler.find("any") == []
    bench.scheduler.cancel([JobId("1")])
    assert not bench.state.exists()


def test_the_state_folder_is_the_users_or_the_one_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key in ("ONWARD_STATE_DIR", "ONWARD_JOB_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_state().parent == tmp_path / ".local" / "state" / "onward"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert default_state().parent == tmp_path / "xdg" / "onward"
    monkeypatch.setenv("ONWARD_JOB_STATE", str(tmp_path / "own"))
    assert default_state() == tmp_path / "own"
    monkeypatch.setenv("ONWARD_STATE_DIR", str(tmp_path / "set"))
    assert default_state().parent == tmp_path / "set"
