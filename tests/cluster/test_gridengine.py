"""Trainings outlive their jobs on a real Grid Engine: what the issue's seed did with a fixed chain of held jobs, by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from beds.gridengine import GridEngineBed
from tests.cluster.conftest import Person, RunOnBed
from tests.cluster.whole import assert_whole

pytestmark = [pytest.mark.cluster]

Unbroken = Callable[[int], Path]

WITHOUT_NOTIFY = 'cluster = "gridengine"\n[clusters.gridengine]\nnotify = false\n'
LEGS_AHEAD = 'cluster = "gridengine"\n[clusters.gridengine]\nlegs-ahead = 3\n'


def training(alice: Person, *flags: str, epochs: int, pause: float, more: tuple[str, ...] = ()) -> tuple[RunOnBed, Path]:
    out = alice.home / "weights.npz"
    command = ["python3", "train.py", "--epochs", str(epochs), "--pause", str(pause), "--out", str(out), *more]
    return alice.submit(*flags, "--", *command), out


def processes_of(job: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"JOB_ID={job}".encode() in variables and any(variable.startswith(b"SGE_CELL=") for variable in variables):
            found.append(int(process.name))
    return found


def onward_outside_jobs(person: Person) -> list[str]:
    """Processes of this test's runs that no job of Grid Engine's holds."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        ours = f"ONWARD_ROOT={person.home / 'runs'}".encode() in variables or str(person.home) in words
        if ours and not any(variable.startswith(b"JOB_ID=") for variable in variables):
            found.append(words)
    return found


def until(condition: Callable[[], object], *, within: float, what: str, pause: float = 0.5) -> None:
    give_up = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up, f"{what} did not come within {within:.0f} s"
        time.sleep(pause)


# ── time limits ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("notify", [True, False], ids=["with notify", "without notify"])
def test_a_training_of_two_and_a_half_minutes_under_a_limit_of_half_a_minute_finishes(
    ge_alice: Person, unbroken: Unbroken, notify: bool
) -> None:
    """Five minutes under one minute are done on Slurm, which counts in minutes."""
    if not notify:
        ge_alice.write("settings.toml", WITHOUT_NOTIFY)
    epochs = 33  # 1,518 steps of 0.1 s
    run, out = training(ge_alice, "--time", "0:30", epochs=epochs, pause=0.1)
    run.until_step(20)
    assert onward_outside_jobs(ge_alice) == []
    run.until_over(within=900)
    shown = assert_whole(run, out=out, unbroken=unbroken(epochs))
    legs = shown["legs"]
    assert len(legs) >= 5  # type: ignore[arg-type]
    assert {leg["end"] for leg in legs} == {"time_limit", "done"}  # type: ignore[attr-defined]


def test_a_leg_that_is_killed_at_its_limit_is_followed_by_the_next(ge_alice: Person, unbroken: Unbroken) -> None:
    """A supervisor that is stopped cannot keep its own deadline: the limit of the queue ends the job, and accounting says so."""
    run, out = training(ge_alice, "--time", "0:25", epochs=5, pause=0.08)
    job = run.until_step(46)["legs"][0]["job"]
    for process in processes_of(job):
        os.kill(process, signal.SIGSTOP)
    run.until_over(within=180)
    shown = assert_whole(run, out=out, unbroken=unbroken(5))
    assert shown["legs"][0]["end"] == "time_limit"  # type: ignore[index]
    assert "killed at its time limit" in shown["legs"][0]["reason"]  # type: ignore[index]


# ── deletions ─────────────────────────────────────────────────────────────────


def test_a_run_whose_leg_is_deleted_saves_and_stays_cancelled_and_can_be_resumed(ge_alice: Person, unbroken: Unbroken) -> None:
    run, out = training(ge_alice, "--time", "10:00", epochs=13, pause=0.05)
    job = run.until_step(100)["legs"][0]["job"]
    ge_alice.run("qdel", job)
    shown = run.until_over(within=90)
    assert shown["state"] == "cancelled", (shown["reason"], run.log())
    assert "deleted" in shown["reason"]
    assert shown["checkpoints"][-1]["step"] == shown["progress"]["step"], run.log()
    until(lambda: run.jobs_left() == [], within=60, what="an empty queue")
    assert run.show()["state"] == "cancelled"
    ge_alice.onward("resume", run.id)
    run.until_over(within=180)
    assert_whole(run, out=out, unbroken=unbroken(13))


def test_a_queue_whose_notice_is_short_is_told_at_submit(ge_alice: Person) -> None:
    said = ge_alice.onward("submit", "--time", "1:00", "-p", "short.q", "--", "python3", "train.py", "--epochs", "1").stderr
    assert "queue short.q leaves 2 s between its kill notice and the kill" in said


def test_a_deletion_without_notice_is_asked_after_by_the_next_leg(ge_alice: Person) -> None:
    ge_alice.write("settings.toml", WITHOUT_NOTIFY)
    run, _ = training(ge_alice, "--time", "10:00", epochs=40, pause=0.1)
    job = run.until_step(20)["legs"][0]["job"]
    ge_alice.run("qdel", job)
    shown = run.until_over(within=120)
    assert shown["state"] == "cancelled", (shown["reason"], run.log())
    until(lambda: run.jobs_left() == [], within=60, what="an empty queue")
    assert len([leg for leg in run.show()["legs"] if leg["started"]]) == 1


def test_a_run_whose_waiting_leg_is_deleted_ends_cancelled_with_the_leg_at_work(ge_alice: Person) -> None:
    """Grid Engine keeps no record of a job that was deleted while it waited."""
    run, _ = training(ge_alice, "--time", "0:40", epochs=40, pause=0.1)
    run.until_step(20)
    until(lambda: [e for e in run.events() if e["kind"] == "submitted" and e["leg"] == 2], within=60, what="leg 2")
    ge_alice.run("qdel", next(e["job"] for e in run.events() if e["kind"] == "submitted" and e["leg"] == 2))
    shown = run.until_over(within=180)
    assert shown["state"] == "cancelled", (shown["reason"], run.log())
    assert "deleted while it waited" in shown["reason"]


def test_a_leg_that_is_killed_without_notice_is_followed_by_the_next(ge_alice: Person, unbroken: Unbroken) -> None:
    """Accounting writes a kill as it writes a deletion; but a deletion would have been announced."""
    run, out = training(ge_alice, "--time", "10:00", epochs=13, pause=0.05)
    job = run.until_step(60)["legs"][0]["job"]
    for process in processes_of(job):
        os.kill(process, signal.SIGKILL)
    run.until_over(within=180)
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    assert shown["legs"][0]["end"] == "lost"  # type: ignore[index]


# ── exit codes ────────────────────────────────────────────────────────────────


def test_a_training_that_raises_at_once_fails_within_two_legs_with_its_traceback(ge_alice: Person) -> None:
    ge_alice.write("broken.py", "import json\n\ndef load():\n    raise ValueError('no such data set: cats')\n\nload()\n")
    run = ge_alice.submit("--time", "10:00", "--", "python3", "broken.py")
    shown = run.until_over(within=120)
    assert shown["state"] == "failed"
    assert len([leg for leg in shown["legs"] if leg["started"]]) <= 2
    assert "ValueError: no such data set: cats" in ge_alice.onward("show", run.id).stdout
    assert run.jobs_left() == []


STOPS_ITSELF = """
import os, runpy, sys, threading, time
code = int(sys.argv.pop(1))
def leave():
    while not os.listdir(os.environ["ONWARD_CHECKPOINT_DIR"]):
        time.sleep(0.1)
    time.sleep(2)
    os._exit(code)
if os.environ["ONWARD_LEG"] == "1":
    threading.Thread(target=leave, daemon=True).start()
sys.argv[0] = "train.py"
runpy.run_path("train.py", run_name="__main__")
"""


def leaving_with(alice: Person, code: int, *, epochs: int) -> tuple[RunOnBed, Path]:
    """The demo's training, whose first leg leaves with this exit code some time after its first checkpoint."""
    alice.write("leaves.py", STOPS_ITSELF)
    out = alice.home / "weights.npz"
    command = ["python3", "leaves.py", str(code), "--epochs", str(epochs), "--pause", "0.05", "--out", str(out)]
    return alice.submit("--time", "10:00", "--", *command), out


def test_a_training_that_exits_99_is_run_again(ge_alice: Person, unbroken: Unbroken) -> None:
    run, out = leaving_with(ge_alice, 99, epochs=5)
    run.until_over(within=180)
    shown = assert_whole(run, out=out, unbroken=unbroken(5))
    legs = shown["legs"]
    assert [leg["end"] for leg in legs] == ["again", "done"], run.log()  # type: ignore[attr-defined]
    assert "exit code 99" in legs[0]["reason"]  # type: ignore[index]


def test_a_training_that_exits_100_has_failed_at_once(ge_alice: Person) -> None:
    run, _ = leaving_with(ge_alice, 100, epochs=40)
    shown = run.until_over(within=120)
    assert shown["state"] == "failed"
    assert "exit code 100" in shown["reason"]
    assert len([leg for leg in shown["legs"] if leg["started"]]) == 1
    assert run.jobs_left() == []


# ── memory ────────────────────────────────────────────────────────────────────

BALLAST = """
import runpy, sys
ballast = bytearray(2200 << 20)
sys.argv = ["train.py", *sys.argv[1:]]
runpy.run_path("train.py", run_name="__main__")
"""


def test_a_training_that_needs_more_than_its_h_vmem_gets_it(ge_alice: Person, unbroken: Unbroken) -> None:
    ge_alice.write("hungry.py", BALLAST)
    out = ge_alice.home / "weights.npz"
    command = ["python3", "hungry.py", "--epochs", "3", "--out", str(out)]
    run = ge_alice.submit("--time", "10:00", "--mem", "1500M", "--mem-max", "12G", "--", *command)
    run.until_over(within=180)
    shown = assert_whole(run, out=out, unbroken=unbroken(3))
    legs = shown["legs"]
    assert [leg["end"] for leg in legs][-1] == "done"  # type: ignore[attr-defined]
    assert {leg["end"] for leg in legs[:-1]} == {"out_of_memory"}  # type: ignore[index]
    assert [leg["mem"] for leg in legs] == [1500 * 2**n for n in range(len(legs))]  # type: ignore[arg-type,attr-defined]


TOGETHER = """
import subprocess, sys, time
hold = "b = bytearray(700 << 20); [b.__setitem__(i, 1) for i in range(0, len(b), 4096)]; import time; time.sleep(60)"
for child in [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(4)]:
    child.wait()
"""


def test_processes_that_use_more_than_h_vmem_together_end_the_run_with_the_figure_to_ask_for(ge_alice: Person) -> None:
    """Each is below the limit, so that none is refused memory: Grid Engine kills the job with all of us in it."""
    ge_alice.write("together.py", TOGETHER)
    run = ge_alice.submit("--time", "10:00", "--mem", "1500M", "--", "python3", "together.py")
    shown = run.until_over(within=180)
    assert shown["state"] == "failed", run.log()
    assert "memory" in shown["reason"]
    assert "--mem 3000M" in shown["next"]


# ── lost hosts ────────────────────────────────────────────────────────────────


@pytest.mark.alone
@pytest.mark.takes("hosts")
def test_a_training_whose_host_dies_finishes_on_another(gridengine_bed: GridEngineBed, ge_alice: Person, unbroken: Unbroken) -> None:
    run, out = training(ge_alice, "--time", "10:00", epochs=13, pause=0.05)
    host = run.until_step(60)["legs"][0]["nodes"][0]
    try:
        gridengine_bed.crash(host)
        run.until_over(within=240)
    finally:
        gridengine_bed.heal(host)
    shown = assert_whole(run, out=out, unbroken=unbroken(13))
    assert shown["legs"][0]["end"] == "node_lost"  # type: ignore[index]


@pytest.mark.alone
@pytest.mark.takes("hosts")
def test_a_training_whose_execd_is_killed_goes_on_unseen_and_the_next_leg_after_it(
    gridengine_bed: GridEngineBed, ge_alice: Person, unbroken: Unbroken
) -> None:
    """Grid Engine hears of the end of a job only when the host's execd is back; or it gives the host up, and starts the job elsewhere."""
    run, out = training(ge_alice, "--time", "0:40", epochs=26, pause=0.05)
    host = run.until_step(60)["legs"][0]["nodes"][0]
    try:
        gridengine_bed.cut(host)
        until(lambda: [e for e in run.events() if e["leg"] == 1 and e["kind"] in ("ended", "found")], within=180, what="the end of leg 1")
    finally:
        gridengine_bed.heal(host)
    run.until_over(within=300)
    shown = assert_whole(run, out=out, unbroken=unbroken(26))
    assert shown["legs"][0]["end"] in ("time_limit", "node_lost")  # type: ignore[index]


@pytest.mark.alone
@pytest.mark.takes("hosts")
def test_an_execd_that_comes_back_after_its_host_was_given_up_does_not_cancel_the_run(
    gridengine_bed: GridEngineBed, ge_alice: Person, unbroken: Unbroken
) -> None:
    """It kills what still runs there, with the very notice that comes before a deletion."""
    run, out = training(ge_alice, "--time", "10:00", epochs=26, pause=0.05)
    first = run.until_step(60)["legs"][0]
    try:
        gridengine_bed.cut(first["nodes"][0])
        give_up(gridengine_bed, first["job"])
    finally:
        gridengine_bed.heal(first["nodes"][0])
    run.until_over(within=300)
    shown = assert_whole(run, out=out, unbroken=unbroken(26))
    assert shown["legs"][0]["end"] == "node_lost"  # type: ignore[index]


def give_up(bed: GridEngineBed, job: str) -> None:
    """What Grid Engine does by itself where a host has been silent for long enough, asked for until it is done."""

    def rescheduled() -> bool:
        command = ["qmod", "-f", "-rj", job]
        done = subprocess.run(command, env={**os.environ, **bed.environment()}, timeout=60, check=False, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        return "rescheduling of job" in done.stdout

    until(rescheduled, within=120, what=f"rescheduling of job {job}")


# The training, which pauses in its steps only as long as a file is not there.
PACED = """
import runpy, sys, threading, time
from pathlib import Path

pause, hurry = time.sleep, Path(sys.argv.pop(1))

def sleep(seconds):
    if threading.current_thread() is not threading.main_thread() or not hurry.exists():
        pause(seconds)

time.sleep = sleep
runpy.run_path("train.py", run_name="__main__")
"""


@pytest.mark.alone
@pytest.mark.takes("hosts")
def test_a_training_that_is_cut_off_is_fenced_and_goes_on_elsewhere(
    gridengine_bed: GridEngineBed, ge_alice: Person, unbroken: Unbroken
) -> None:
    """The old leg runs on unseen, and its job is started once more elsewhere: that makes way, and the next leg takes over."""
    epochs = 104  # four minutes: longer than a busy scheduler takes to start leg 2
    ge_alice.write("paced.py", PACED)
    out, hurry = ge_alice.home / "weights.npz", ge_alice.home / "hurry"
    command = ["python3", "paced.py", str(hurry), "--epochs", str(epochs), "--pause", "0.05", "--out", str(out)]
    run = ge_alice.submit("--time", "10:00", "--", *command)
    first = run.until_step(60)["legs"][0]
    try:
        gridengine_bed.unplug(first["nodes"][0])
        give_up(gridengine_bed, first["job"])
        run.until(lambda r: len(r["legs"]) > 1 and r["legs"][1]["started"], within=180, what="leg 2")
        old = [pid for pid in processes_of(first["job"]) if _host(pid) == first["nodes"][0]]
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in old), within=60, what="the end of the old leg")
        ge_alice.write("hurry", "")
        run.until_over(within=300)
    finally:
        gridengine_bed.heal(first["nodes"][0])
    shown = assert_whole(run, out=out, unbroken=unbroken(epochs))
    assert shown["legs"][0]["end"] == "node_lost"  # type: ignore[index]


def _host(pid: int) -> str:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((variable.decode().partition("=")[2] for variable in variables if variable.startswith(b"HOSTNAME=")), "")


# ── legs queued ahead ─────────────────────────────────────────────────────────


def test_where_jobs_may_not_submit_legs_are_queued_ahead_and_tend_tops_up(ge_alice: Person, unbroken: Unbroken) -> None:
    ge_alice.write("settings.toml", LEGS_AHEAD)
    epochs = 20  # 920 steps of 0.1 s
    run, out = training(ge_alice, "--time", "0:30", "-p", "nosubmit.q", epochs=epochs, pause=0.1)
    assert len(ge_alice.queue()) >= 3
    run.until_step(20)
    assert onward_outside_jobs(ge_alice) == []
    run.until(lambda r: len(r["legs"]) > 1 and r["legs"][1]["started"], within=120, what="leg 2")

    def topped_up() -> bool:
        ge_alice.onward("tend")
        return {event["leg"] for event in run.events() if event["kind"] == "submitted"} >= {1, 2, 3, 4, 5}

    def over() -> bool:
        ge_alice.onward("tend")
        return (run.folder / "params" / "done.json").exists()

    until(topped_up, within=90, pause=3, what="topping up")
    until(over, within=400, pause=3, what="the end of the run")
    until(lambda: run.jobs_left() == [], within=60, what="the leaving of surplus legs")
    shown = assert_whole(run, out=out, unbroken=unbroken(epochs))
    assert len(shown["legs"]) > 3  # type: ignore[arg-type]
