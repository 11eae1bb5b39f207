"""Faults against a real run on the local scheduler: what happens to the training, and what the run says of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.conftest import LocalRun, Machine

pytestmark = pytest.mark.slow

COUNTING = """
run = onward.init(total_steps={steps})
saved = run.resume()
first = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
def save(step):
    with run.checkpoint(step) as folder:
        (folder / "state.json").write_text(json.dumps({{"step": step}}))
        (folder / "weights.bin").write_bytes(b"w" * {size})
for step in range(first, {steps}):
    time.sleep({pause})
    run.log({{"loss": 1.0 / (step + 1)}}, step=step)
    print("step", step, flush=True)
    if run.should_stop():
        save(step)
        sys.exit(75)
    if step % {every} == {every} - 1:
        save(step)
run.finish()
"""


def counting(*, steps: int = 60, pause: float = 0.1, every: int = 10, size: int = 1000) -> str:
    return COUNTING.format(steps=steps, pause=pause, every=every, size=size)


def steps_printed(run: LocalRun) -> list[int]:
    return [int(line.split()[1]) for line in run.output().splitlines() if line.startswith("step ")]


def alive(pid: int) -> bool:
    """Not merely waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_legs_follow_each_other_without_losing_or_repeating_a_step(machine: Machine) -> None:
    run = machine.submit(counting(), "--time", "0:04")
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert len(shown["legs"]) >= 2
    assert steps_printed(run) == list(range(60))
    assert [leg["end"] for leg in shown["legs"]][:-1] == ["time_limit"] * (len(shown["legs"]) - 1)


def test_a_kill_of_everything_loses_nothing_beyond_the_last_checkpoint(machine: Machine) -> None:
    run = machine.submit(counting(steps=250), "--time", "2:00")
    run.until(lambda r: r["checkpoints"])
    job = run.events("claimed")[0]["job"]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        state = machine.environment["ONWARD_STATE_DIR"].encode()
        if f"ONWARD_JOB_ID={job}".encode() in variables and any(state in variable for variable in variables):
            os.kill(int(process.name), signal.SIGKILL)
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert shown["legs"][0]["end"] == "lost"
    assert set(steps_printed(run)) == set(range(250))
    assert shown["legs"][1]["resumed_step"] == max(e["step"] for e in run.events("published") if e["leg"] == 1)


def test_a_warning_long_before_the_limit_is_heeded_and_the_run_goes_on(machine: Machine) -> None:
    """As a site sends it to a job that is to be preempted: the supervisor alone gets it."""
    run = machine.submit(counting(steps=250), "--time", "10:00")
    run.until(lambda r: r["checkpoints"])
    os.kill(run.supervisor_pid(1), signal.SIGUSR1)
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert [leg["end"] for leg in shown["legs"]] == ["preempted", "done"]
    assert steps_printed(run) == list(range(250)), "nothing was lost or repeated"


def test_a_killed_supervisor_leaves_no_training_behind(machine: Machine) -> None:
    run = machine.submit(counting(steps=250), "--time", "2:00")
    pid = run.training_pid(1)
    os.kill(run.supervisor_pid(1), signal.SIGKILL)
    run.until(lambda r: len(r["legs"]) > 1 and r["legs"][1]["started"])
    assert not alive(pid)
    assert run.until_over()["state"] == "finished"


def test_a_stopped_process_is_found_stalled_and_restarted_with_its_stacks_dumped(machine: Machine) -> None:
    run = machine.submit(counting(steps=300), "--time", "2:00", "--stall-time", "0:04")
    run.until(lambda r: r["checkpoints"])
    os.kill(run.training_pid(1), signal.SIGSTOP)
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert shown["legs"][0]["end"] == "stalled"
    assert "most recent call first" in run.output("err"), "faulthandler wrote the stacks"


def test_a_training_that_ignores_the_request_is_ended_and_its_own_files_are_used(machine: Machine) -> None:
    """No SDK: numbered files, a run that never looks at the stop file."""
    script = """
import json, os, time
write, read = os.environ["ONWARD_CHECKPOINT_DIR"], os.environ.get("ONWARD_RESUME_DIR")
first = max(int(name[5:9]) for name in os.listdir(read) if name.startswith("ckpt-")) + 1 if read else 0
for step in range(first, 30):
    time.sleep(0.25)
    if step % 4 == 3:
        with open(f"{write}/ckpt-{step:04d}.json", "w") as file:
            json.dump({"step": step}, file)
    print("step", step, flush=True)
"""
    run = machine.submit(script, "--time", "0:07", prelude="")
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert "did not stop by itself" in shown["legs"][0]["reason"]
    assert set(steps_printed(run)) == set(range(30))


def test_a_file_written_in_the_first_moment_and_the_last_is_not_lost(machine: Machine) -> None:
    script = """
import os
with open(os.path.join(os.environ["ONWARD_CHECKPOINT_DIR"], "model_1.pt"), "w") as file:
    file.write("weights")
"""
    run = machine.submit(script, "--time", "1:00", prelude="")
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert [(c["step"], c["state"]) for c in shown["checkpoints"]] == [(1, "published")]


def test_a_stop_signal_of_the_users_choice_is_sent_to_the_training_alone(machine: Machine) -> None:
    script = """
import signal
stopped = []
signal.signal(signal.SIGUSR2, lambda *_: stopped.append(1))
run = onward.init()
step = (run.resume_step or -1) + 1
while not stopped and step < 40:
    time.sleep(0.1)
    step += 1
with run.checkpoint(step) as folder:
    (folder / "x").write_text(str(step))
print("stopped by signal" if stopped else "all done", flush=True)
sys.exit(75 if stopped else 0)
"""
    run = machine.submit(script, "--time", "0:04", "--stop-signal", "USR2")
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert "stopped by signal" in run.output() and "all done" in run.output()


def test_more_memory_is_asked_for_up_to_the_most_allowed(machine: Machine) -> None:
    script = """
run = onward.init()
ballast = bytearray(250 << 20)
for i in range(0, len(ballast), 4096):
    ballast[i] = 1
time.sleep(3)
run.finish()
"""
    run = machine.submit(script, "--time", "1:00", "--mem", "200M", "--mem-max", "1G")
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert [leg["end"] for leg in shown["legs"]] == ["out_of_memory", "done"]
    assert [leg["mem"] for leg in shown["legs"]] == [200, 400]


def test_a_cancel_by_hand_at_the_queue_itself_stays_cancelled(machine: Machine) -> None:
    run = machine.submit(counting(steps=600), "--time", "1:00")
    run.until(lambda r: r["checkpoints"])
    machine.onward("cancel", run.id)
    time.sleep(2)
    shown = run.show()
    assert shown["state"] == "cancelled"
    assert [leg for leg in shown["legs"] if leg["state"] in ("running", "queued", "held")] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0777", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_store_costs_checkpoints_not_the_training_and_goes_on_when_there_is_room(small_disk: Path, machine: Machine) -> None:
    machine.environment["ONWARD_ROOT"] = str(small_disk / "runs")
    run = machine.submit(counting(steps=3000, size=800_000, every=10), "--time", "5:00")
    run.until(lambda r: r["checkpoints"])
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    run.until(lambda r: r["legs"][0]["warnings"], within=60)
    warned = run.show()["legs"][0]["warnings"]
    assert any(str(small_disk) in words and "needs" in words for words in warned), warned
    assert alive(run.training_pid(1)), "training went on"
    good = run.show()["checkpoints"]
    assert good and all(c["state"] == "published" for c in good)
    ballast.unlink()
    newest = good[-1]["step"]
    run.until(lambda r: r["checkpoints"][-1]["step"] > newest, within=60)
    machine.onward("stop", run.id)
    assert "stopped by" in run.until_over()["reason"]


def test_a_store_that_stays_full_ends_the_run_after_two_legs_with_the_path_and_the_need(small_disk: Path, machine: Machine) -> None:
    machine.environment["ONWARD_ROOT"] = str(small_disk / "runs")
    run = machine.submit(counting(steps=2000, size=4_000_000, every=5), "--time", "0:12")
    shown = run.until_over(within=120)
    assert shown["state"] == "failed"
    assert "saved checkpoints, and none could be stored" in shown["cause"]
    assert str(small_disk) in shown["evidence"] and "make room" in shown["next"]
    assert "could not be stored" in shown["legs"][-1]["reason"]
    assert shown["checkpoints"], "the last good one is still there"


def test_a_full_node_disk_skips_checkpoints_and_training_goes_on(small_disk: Path, machine: Machine) -> None:
    """A profile names it: a disk in memory is not taken otherwise."""
    settings = machine.home / "settings.toml"
    settings.write_text(f'[clusters.local]\nscheduler = "local"\nlocal-disk = "{small_disk}"\n')
    machine.environment["ONWARD_SETTINGS"] = str(settings)
    run = machine.submit(counting(steps=60, size=20_000_000, every=10), "--time", "1:00")
    shown = run.until_over()
    assert any("skipped a checkpoint" in words and str(small_disk) in words for words in shown["legs"][0]["warnings"]), shown["legs"]
    assert shown["state"] == "finished"
    assert steps_printed(run) == list(range(60))
    assert "skipped" in run.output("err")


def test_a_log_that_cannot_be_stored_costs_no_checkpoint_and_is_said(machine: Machine) -> None:
    """The run's log of this leg is in the way, from the first moment on."""
    block = """
theirs = pathlib.Path(os.environ["ONWARD_RUN_DIR"], "logs", "leg-0001.out")
theirs.unlink(missing_ok=True)
theirs.symlink_to("/nowhere/at/all")
"""
    run = machine.submit(block + counting(steps=30), "--time", "2:00", prelude="import json, os, pathlib, sys, time\nimport onward\n")
    shown = run.until_over()
    assert shown["state"] == "finished"
    assert [c["step"] for c in shown["checkpoints"]] == [9, 19, 29]
    assert not run.events("missed")
    assert "leg-0001.out" in run.events("warned")[-1]["text"]
    log = (run.folder / "logs" / "supervisor.log").read_text()
    assert "Traceback" not in log and log.count("mirroring failed") == 1


def test_the_save_that_a_stop_asked_for_is_let_finish(machine: Machine) -> None:
    """A quick one before it, as of the step before, is not the one that was asked for."""
    script = """
run = onward.init()
for step in range(10_000):
    time.sleep(0.1)
    run.log({"loss": 1.0}, step=step)
    print("step", step, flush=True)
    if run.should_stop():
        for number, seconds in ((step - 1, 0), (step, 13)):
            with run.checkpoint(number) as folder:
                (folder / "state.json").write_text("{}")
                time.sleep(seconds)
        sys.exit(75)
"""
    run = machine.submit(script, "--time", "10:00")
    run.until(lambda _: run.output())
    machine.onward("stop", run.id)
    run.until(lambda _: run.events("ended"))
    [ended] = run.events("ended")
    assert ended["end"] == "again"
    assert max(e["step"] for e in run.events("published")) == ended["last_step"]
