"""Single processes of a leg are killed while the scheduler looks away: what they leave running, and what is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onward.supervisor.processes.guard import marked
from tests.crash.conftest import LocalRun, Machine, _processes
from tests.crash.test_faults_on_one_machine import counting, steps_printed

pytestmark = pytest.mark.slow

# Started by the training, in sessions of their own, one of them an orphan.
FAMILY = """
import subprocess
subprocess.Popen(["sleep", "600"], start_new_session=True)
subprocess.Popen(["/bin/sh", "-c", "sleep 601 & exit 0"], start_new_session=True)
"""


def until(holds: Callable[[], object], what: str, *, within: float = 30.0) -> None:
    give_up = time.monotonic() + within
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come"
        time.sleep(0.02)


def children(pid: int) -> dict[int, str]:
    """With their command lines."""
    found = {}
    for child, words in _processes():
        with contextlib.suppress(OSError):
            if int(Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found[child] = words
    return found


def the_guard(run: LocalRun, leg: int) -> int:
    pid = run.training_pid(leg)
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def the_publisher(run: LocalRun, leg: int) -> int | None:
    """None while another is being started."""
    return next((pid for pid, words in children(run.supervisor_pid(leg)).items() if " stage " in words), None)


@pytest.fixture
def unwatched(machine: Machine) -> Iterator[Callable[[], None]]:
    """Stops the local queue's keeper, so that nothing but Onward's own processes can end the training."""
    stopped: list[int] = []

    def stop() -> None:
        stopped.extend(pid for pid, words in _processes() if "keeper" in words and machine.environment["ONWARD_STATE_DIR"] in words)
        assert stopped
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)

    yield stop
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def processes_of(run: LocalRun, leg: int) -> set[int]:
    return marked([{"ONWARD_RUN_ID": run.id, "ONWARD_LEG": str(leg)}])


@pytest.mark.parametrize("killed", ["supervisor", "guard", "supervisor and guard"])
def test_the_training_and_all_it_started_end_with_whoever_was_killed(machine: Machine, unwatched: Callable[[], None], killed: str) -> None:
    run = machine.submit(FAMILY + counting(steps=250, every=5), "--time", "2:00")
    run.until(lambda r: r["checkpoints"])
    pids = {"supervisor": run.supervisor_pid(1), "guard": the_guard(run, 1)}
    assert len(processes_of(run, 1)) >= 3, "the training and what it started"
    unwatched()
    for who in killed.split(" and "):
        os.kill(pids[who], signal.SIGKILL)
    until(lambda: not processes_of(run, 1), "the end of the training and all it started")
    keeper = [pid for pid, words in _processes() if "keeper" in words and machine.environment["ONWARD_STATE_DIR"] in words]
    for pid in keeper:
        os.kill(pid, signal.SIGCONT)
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert set(steps_printed(run)) == set(range(250))


def test_a_publisher_that_is_killed_is_started_again_and_nothing_is_lost(machine: Machine) -> None:
    run = machine.submit(counting(steps=150, every=5), "--time", "2:00")
    until(lambda: run.events("published"), "a checkpoint")
    first = the_publisher(run, 1)
    assert first
    os.kill(first, signal.SIGKILL)
    until(lambda: the_publisher(run, 1) not in (first, None), "another publisher")
    shown = run.until_over()
    assert shown["state"] == "finished" and len(shown["legs"]) == 1
    assert max(event["step"] for event in run.events("published")) == 149


def test_what_a_plain_script_saved_just_before_every_process_gets_sigterm_is_published(machine: Machine) -> None:
    """As Slurm does it at a preemption. The script knows nothing of Onward, and dies of the signal."""
    script = """
import os, sys, time, zipfile
write, read = os.environ["ONWARD_CHECKPOINT_DIR"], os.environ.get("ONWARD_RESUME_DIR")
def save(step):
    with zipfile.ZipFile(f"{write}/model_{step}.pt", "w") as file:
        file.writestr("weights", b"w" * 1000)
    print("saved", step, flush=True)
if read:
    print("found", sorted(name for name in os.listdir(read) if name.startswith("model")), flush=True)
    sys.exit(0)
for step in range(3):
    save(step)
    time.sleep(0.3)
while not os.path.exists("GO"):
    time.sleep(0.01)
save(3)
time.sleep(600)
"""
    go = machine.home / "go"
    run = machine.submit(script.replace("GO", str(go)), "--time", "5:00", prelude="")
    run.training_pid(1)
    local = Path(run.events("claimed")[0]["local"])
    until(lambda: [event for event in run.events("published") if event["step"] == 1], "the second checkpoint: how it saves is known")
    go.touch()
    job, state = run.events("claimed")[0]["job"], machine.environment["ONWARD_STATE_DIR"].encode()
    until(lambda: "saved 3" in local.joinpath("logs", "leg-0001.out").read_text(), "the last save")
    for pid in marked([{"ONWARD_JOB_ID": job}]):
        with contextlib.suppress(OSError):
            if state in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGTERM)
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert [event["step"] for event in run.events("restored")] == [3], "the second leg began where the first had saved"
