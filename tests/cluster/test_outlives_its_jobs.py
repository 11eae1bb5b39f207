"""On a real Slurm, as an ordinary user, with no Onward process outside jobs: the training ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from beds.slurm import SlurmBed
from tests.cluster.conftest import Person, RunOnBed
from tests.cluster.whole import assert_whole

pytestmark = [pytest.mark.cluster]

Unbroken = Callable[[int], Path]


def training(alice: Person, *flags: str, epochs: int, pause: float, more: tuple[str, ...] = ()) -> tuple[RunOnBed, Path]:
    out = alice.home / "weights.npz"
    command = ["python3", "train.py", "--epochs", str(epochs), "--pause", str(pause), "--out", str(out), *more]
    return alice.submit("--mem", "400M", *flags, "--", *command), out


def processes_of(job: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"SLURM_JOB_ID={job}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def onward_outside_jobs(person: Person) -> list[str]:
    """Processes of this test's runs that no job of Slurm's holds."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        ours = f"ONWARD_ROOT={person.home / 'runs'}".encode() in variables or str(person.home) in words
        if ours and not any(variable.startswith(b"SLURM_JOB_ID=") for variable in variables):
            found.append(words)
    return found


def test_a_training_of_five_minutes_under_a_limit_of_one_minute_finishes(alice: Person, unbroken: Unbroken) -> None:
    epochs = 65  # 2,990 steps of 0.1 s
    run, out = training(alice, "--time", "1:00", epochs=epochs, pause=0.1)
    run.until_step(20)
    assert onward_outside_jobs(alice) == []
    run.until_over(within=600)
    shown = assert_whole(run, out=out, unbroken=unbroken(epochs))
    assert len(shown["legs"]) >= 5  # type: ignore[arg-type]


@pytest.mark.takes("nodes")
def test_a_training_whose_node_dies_finishes_on_another(bed: SlurmBed, alice: Person, unbroken: Unbroken) -> None:
    run, out = training(alice, "--time", "10:00", "-p", "gpu", "--exclude", "g3", epochs=13, pause=0.05)
    node = run.until_step(60)["legs"][0]["nodes"][0]
    try:
        bed.crash(node)
        run.until_over(within=180)
    finally:
        bed.heal(node)
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    assert shown["legs"][0]["end"] == "node_lost"  # type: ignore[index]


@pytest.mark.takes("nodes")
def test_a_training_whose_slurmd_is_killed_is_fenced_off_and_goes_on_elsewhere(bed: SlurmBed, alice: Person, unbroken: Unbroken) -> None:
    """The old leg runs on unseen: the claim of the new one must end it, and nothing it does may reach the result."""
    run, out = training(alice, "--time", "10:00", "-p", "gpu", "--exclude", "g3", epochs=26, pause=0.05)
    first = run.until_step(60)["legs"][0]
    try:
        bed.cut(first["nodes"][0])
        run.until(lambda r: len(r["legs"]) > 1 and r["legs"][1]["started"], within=120, what="leg 2")
        give_up = time.monotonic() + 30
        while processes_of(first["job"]) and time.monotonic() < give_up:
            time.sleep(0.5)
        assert processes_of(first["job"]) == [], "the old leg did not leave when it was fenced off"
        run.until_over(within=180)
    finally:
        bed.heal(first["nodes"][0])
    assert_whole(run, out=out, unbroken=unbroken(26))


@pytest.mark.takes("v100")
def test_a_preempted_training_goes_on_when_there_is_room_again(alice: Person, unbroken: Unbroken) -> None:
    run, out = training(alice, "--time", "10:00", "-p", "spot", "--gres", "gpu:v100:2", epochs=13, pause=0.05)
    run.until_step(60)
    alice.run("sbatch", "-p", "gpu", "--gres=gpu:v100:2", "-t", "2", "-o", "/dev/null", "--wrap", "sleep 8")
    run.until_over(within=180)
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    assert shown["legs"][0]["end"] == "preempted"  # type: ignore[index]


PLAIN = """
import json, os, time
write, read = os.environ["ONWARD_CHECKPOINT_DIR"], os.environ.get("ONWARD_RESUME_DIR")
first = max(int(name[5:9]) for name in os.listdir(read) if name.startswith("ckpt-")) + 1 if read else 0
for step in range(first, 60):
    time.sleep(0.25)
    if step % 8 == 7:
        with open(f"{write}/ckpt-{step:04d}.json", "w") as file:
            json.dump({"step": step}, file)
print("all done", flush=True)
"""


@pytest.mark.takes("v100")
def test_a_plain_script_that_dies_of_the_preemption_is_not_taken_for_a_crash(alice: Person) -> None:
    """No SDK, no handlers: Slurm's SIGTERM reaches the training itself and kills it at once."""
    alice.write("plain.py", PLAIN)
    run = alice.submit("--time", "10:00", "--mem", "300M", "-p", "spot", "--gres", "gpu:v100:2", "--", "python3", "plain.py")
    run.until(lambda r: r["checkpoints"])
    alice.run("sbatch", "-p", "gpu", "--gres=gpu:v100:2", "-t", "2", "-o", "/dev/null", "--wrap", "sleep 5")
    shown = run.until_over(within=120)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert [leg["end"] for leg in shown["legs"]] == ["preempted", "done"]
    assert shown["legs"][1]["resumed_step"] is not None


def test_a_leg_killed_with_all_its_processes_is_followed_by_the_next(alice: Person, unbroken: Unbroken) -> None:
    run, out = training(alice, "--time", "10:00", epochs=13, pause=0.05)
    job = run.until_step(60)["legs"][0]["job"]
    for process in processes_of(job):
        os.kill(process, signal.SIGKILL)
    run.until_over(within=120)
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    assert shown["legs"][0]["end"] == "lost"  # type: ignore[index]


BALLAST = """
import runpy, sys
ballast = bytearray(600 << 20)
for i in range(0, len(ballast), 4096):
    ballast[i] = 1
sys.argv = ["train.py", *sys.argv[1:]]
runpy.run_path("train.py", run_name="__main__")
"""


def test_a_training_that_needs_more_memory_than_asked_gets_it(alice: Person, unbroken: Unbroken) -> None:
    alice.write("hungry.py", BALLAST)
    out = alice.home / "weights.npz"
    command = ["python3", "hungry.py", "--epochs", "3", "--out", str(out)]
    run = alice.submit("--time", "10:00", "--mem", "300M", "--mem-max", "2G", "--", *command)
    run.until_over(within=120)
    shown = assert_whole(run, out=out, unbroken=unbroken(3))
    legs = shown["legs"]
    assert [leg["end"] for leg in legs] == ["out_of_memory", "out_of_memory", "done"]  # type: ignore[attr-defined]
    assert [leg["mem"] for leg in legs] == [300, 600, 1200]  # type: ignore[attr-defined]


def test_out_of_memory_at_the_most_allowed_stops_with_the_figure_to_ask_for(alice: Person) -> None:
    alice.write("hungry.py", BALLAST)
    run = alice.submit("--time", "10:00", "--mem", "300M", "--", "python3", "hungry.py")
    shown = run.until_over(within=120)
    assert shown["state"] == "failed"
    assert "memory" in shown["reason"]
    assert "--mem 600M" in shown["next"]
    assert run.jobs_left() == []


def test_slurm_itself_is_asked_when_a_job_is_scancelled(alice: Person) -> None:
    run, _ = training(alice, "--time", "10:00", epochs=40, pause=0.1)
    job = run.until_step(20)["legs"][0]["job"]
    alice.run("scancel", job)
    shown = run.until_over(within=60)
    assert shown["state"] == "cancelled"
    time.sleep(5)
    assert run.show()["state"] == "cancelled"
    assert run.jobs_left() == []


def test_a_cancelled_run_stays_cancelled_and_can_be_resumed(alice: Person, unbroken: Unbroken) -> None:
    run, out = training(alice, "--time", "10:00", epochs=13, pause=0.05)
    run.until_step(100)
    alice.onward("cancel", run.id)
    assert run.show()["state"] == "cancelled"
    run.until(lambda _: run.jobs_left() == [], within=30, what="an empty queue")
    time.sleep(3)
    assert run.show()["state"] == "cancelled"
    alice.onward("resume", run.id)
    run.until_over(within=120)
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    assert [leg["number"] for leg in shown["legs"]] == [1, 2]  # type: ignore[attr-defined]


def test_a_stopped_run_saves_first_and_goes_on_from_there(alice: Person, unbroken: Unbroken) -> None:
    run, out = training(alice, "--time", "10:00", epochs=13, pause=0.05)
    run.until_step(100)
    alice.onward("stop", run.id)
    shown = run.until_over(within=60)
    assert shown["state"] == "cancelled" and "stopped by alice" in shown["reason"]
    assert shown["checkpoints"][-1]["step"] == shown["progress"]["step"], "the last step was saved"
    alice.onward("resume", run.id)
    run.until_over(within=120)
    assert_whole(run, out=out, unbroken=unbroken(13))


def test_a_training_that_raises_at_once_fails_within_two_legs_with_its_traceback(alice: Person) -> None:
    alice.write("broken.py", "import json\n\ndef load():\n    raise ValueError('no such data set: cats')\n\nload()\n")
    run = alice.submit("--time", "10:00", "--mem", "300M", "--", "python3", "broken.py")
    shown = run.until_over(within=60)
    assert shown["state"] == "failed"
    assert len([leg for leg in shown["legs"] if leg["started"]]) <= 2
    words = alice.onward("show", run.id).stdout
    assert "ValueError: no such data set: cats" in words
    assert "Traceback (most recent call last)" in words
    assert run.jobs_left() == []


def test_a_training_with_nothing_to_save_says_what_to_change(alice: Person) -> None:
    alice.write("forgetful.py", "import time\nwhile True:\n    time.sleep(0.1)\n")
    run = alice.submit("--time", "1:00", "--mem", "300M", "--", "python3", "forgetful.py")
    shown = run.until_over(within=240)
    assert shown["state"] == "failed"
    assert "without a new checkpoint" in shown["reason"]
    assert "--time" in shown["next"] and "save more often" in shown["next"]
