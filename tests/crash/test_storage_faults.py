"""The run's storage is full, read-only or away for seconds, in each phase of a leg: nothing is lost, and the run goes on by itself.

Two cases are part of the suite. All of them, with a table of what happened:

    STORAGE_FAULTS=5,13,60 pytest -n0 -s tests/crash/test_storage_faults.py
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onward.schedulers.local.scheduler import LocalScheduler
from tests.crash.conftest import LocalRun, Machine
from tests.crash.test_faults_on_one_machine import alive, counting, steps_printed

pytestmark = pytest.mark.slow

STEPS = 110
SECONDS = [float(text) for text in os.environ.get("STORAGE_FAULTS", "").split(",") if text]


# ── a disk in the test's hand ─────────────────────────────────────────────────


class Disk:
    """A small disk with the runs on it. Whatever is done to it, this side can still look."""

    def __init__(self, folder: Path) -> None:
        self.path, self._behind = folder / "disk", folder / "behind"
        for mount in (self.path, self._behind):
            mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(self.path)], capture_output=True).returncode:
            pytest.skip("a small disk cannot be mounted here")
        _mount("--bind", str(self.path), str(self._behind))

    def close(self) -> None:
        for folder in (self.path, self.path, self._behind):  # the first may be what lies over it
            subprocess.run(["umount", "--lazy", str(folder)], capture_output=True)

    def seen(self, path: Path) -> Path:
        """The same file, where no fault is."""
        return self._behind / path.relative_to(self.path)

    @contextmanager
    def full(self) -> Iterator[None]:
        ballast = self._behind / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        yield
        ballast.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """For everything that is opened from now on. What was open stays writable, or the kernel would refuse."""
        _mount("--bind", str(self._behind), str(self.path))
        while True:  # the kernel refuses while somebody has just opened a file there to write
            with contextlib.suppress(subprocess.CalledProcessError):
                _mount("-o", "remount,bind,ro", str(self.path))
                break
        yield
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    @contextmanager
    def away(self) -> Iterator[None]:
        """As if it were not mounted."""
        _mount("-t", "tmpfs", "-o", "size=24m", "tmpfs", str(self.path))
        yield
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    made = Disk(tmp_path)
    yield made
    made.close()


# ── phases of a leg ───────────────────────────────────────────────────────────


class Watched:
    """A run as it is seen from behind the fault. Nothing here repairs it: `onward show` might."""

    def __init__(self, run: LocalRun, disk: Disk) -> None:
        self.run, self.folder = run, disk.seen(run.folder)

    def events(self, kind: str) -> list[dict[str, object]]:
        found = []
        for path in sorted((self.folder / "journal").glob("*.jsonl")):
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return [event for event in found if event["kind"] == kind]

    def until(self, holds: Callable[[Watched], object], *, within: float) -> None:
        give_up = time.monotonic() + within
        while not holds(self):
            if time.monotonic() > give_up:
                log = self.folder / "logs" / "supervisor.log"
                pytest.fail(f"did not come within {within} s:\n{log.read_text() if log.exists() else '(no log)'}")
            time.sleep(0.02)


PHASES: dict[str, Callable[[Watched], object]] = {
    "before its job starts": lambda run: True,
    "claim": lambda run: (run.folder / "params" / "claims" / "leg-0001.json").exists(),
    "training starts": lambda run: run.events("started"),
    "save and publish": lambda run: run.events("published"),
    "stop": lambda run: run.events("askedtostop"),
    "end and hand over": lambda run: run.events("ended"),
    "next leg's start": lambda run: [e for e in run.events("claimed") if e["leg"] == 2],
}
KINDS: dict[str, Callable[[Disk], contextlib.AbstractContextManager[None]]] = {
    "full": Disk.full,
    "read-only": Disk.read_only,
    "away": Disk.away,
}
ALWAYS = [("before its job starts", "read-only", 4.0), ("end and hand over", "full", 4.0)]
ALL = [(phase, kind, seconds) for seconds in SECONDS for phase in PHASES for kind in KINDS]


@pytest.mark.parametrize(("phase", "kind", "seconds"), ALL or ALWAYS)
def test_a_run_outlives_a_fault_of_its_storage(machine: Machine, disk: Disk, phase: str, kind: str, seconds: float) -> None:
    machine.environment["ONWARD_ROOT"] = str(disk.path / "runs")
    limit = 12 + 2 * int(seconds)
    began = time.monotonic()
    steps = STEPS + 20 * int(seconds)
    time_limit = f"{limit // 60}:{limit % 60:02d}"
    run = Watched(machine.submit(counting(steps=steps, size=100_000), "--time", time_limit), disk)
    run.until(PHASES[phase], within=60 + limit)
    with KINDS[kind](disk):
        time.sleep(seconds)
    run.until(lambda run: (run.folder / "params" / "done.json").exists(), within=240 + 4 * seconds)
    shown = run.run.show()
    printed = steps_printed(run.run)
    lost = [step for step in range(steps) if step not in printed]
    again = len(printed) - len(set(printed))
    newest = shown["checkpoints"][-1]["step"]
    ends = " ".join(leg["end"] or "?" for leg in shown["legs"])
    took = time.monotonic() - began
    print(f"\n{kind:9} {seconds:3.0f} s  {phase:21} {shown['state']:8} {took:4.0f} s  {again} steps twice, {len(lost)} lost  legs: {ends}")
    bad = [f"{leg['end']}: {leg['reason']}" for leg in shown["legs"] if leg["end"] in ("lost", "crashed")]
    if bad:
        print("\n".join([*bad, (run.folder / "logs" / "supervisor.log").read_text()]))
    assert shown["state"] == "finished", shown
    assert not lost
    assert newest == steps - 1, "the last state of the training is stored"


# ── full from the first job on ────────────────────────────────────────────────


def unended_jobs(machine: Machine) -> list[str]:
    """Of the local queue, by name without token."""
    jobs = LocalScheduler(Path(machine.environment["ONWARD_STATE_DIR"], f"local-{socket.gethostname()}")).live()
    return sorted(status.name.rpartition(".")[0] for status in jobs.values())


def wait_until(machine: Machine, jobs: list[str]) -> None:
    give_up = time.monotonic() + 60
    while unended_jobs(machine) != jobs:
        assert time.monotonic() < give_up, unended_jobs(machine)
        time.sleep(0.1)


def test_jobs_that_a_full_disk_kept_from_being_recorded_are_cancelled_too(machine: Machine, disk: Disk) -> None:
    machine.environment["ONWARD_ROOT"] = str(disk.path / "runs")
    run = machine.submit(counting(), "--time", "2:00")
    with disk.full():
        wait_until(machine, ["train.1", "train.2"])
        assert "train.2" not in "".join(path.read_text() for path in (run.folder / "journal").iterdir()), "the disk took it"
        assert f"the disk of {disk.path / 'runs'} is full" in machine.onward("show", run.id).stdout
        output = machine.onward("cancel", run.id, check=False)
        assert output.returncode and "the jobs of train are cancelled, but the disk" in output.stderr
        wait_until(machine, [])


def test_a_job_that_a_full_disk_kept_from_being_recorded_is_not_queued_again(machine: Machine, disk: Disk) -> None:
    machine.environment["ONWARD_ROOT"] = str(disk.path / "runs")
    run = machine.submit(counting(steps=5), "--time", "2:00")
    with disk.full():
        wait_until(machine, ["train.1", "train.2"])
        give_up = time.monotonic() + 90
        while "is full" not in (output := machine.onward("tend", check=False).stderr):  # it leaves alone what was written a moment ago
            assert time.monotonic() < give_up, output
            time.sleep(1)
        assert f"the disk of {disk.path / 'runs'} is full, so what was found about train" in output
        assert unended_jobs(machine) == ["train.1", "train.2"]
    assert run.until_over()["state"] == "finished"
    wait_until(machine, [])


# ── full over the very end ────────────────────────────────────────────────────

FINISHING = """
run = onward.init(total_steps=20)
saved = run.resume()
first = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
def save(step):
    with run.checkpoint(step) as folder:
        (folder / "state.json").write_text(json.dumps({"step": step}))
        (folder / "weights.bin").write_bytes(b"w" * 100_000)
for step in range(first, 20):
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    print("step", step, flush=True)
    if step == 18:
        save(step)
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.05)
if sys.argv[2] == "saves":
    save(19)
run.finish()
"""


@pytest.mark.parametrize(
    "saves", [True, False], ids=["and what it saved last lies on the node", "and the next leg sees nothing of its node"]
)
def test_a_training_that_finished_while_the_storage_was_full_is_not_trained_again(machine: Machine, disk: Disk, saves: bool) -> None:
    machine.environment["ONWARD_ROOT"] = str(disk.path / "runs")
    go_on = machine.home / "go-on"
    words = (str(go_on), "saves" if saves else "has saved")
    run = Watched(machine.submit(FINISHING, "--time", "1:00", arguments=words), disk)
    run.until(lambda run: run.events("published"), within=60)
    supervisor = int(json.loads((run.folder / "params" / "claims" / "leg-0001.json").read_text())["pid"])
    with disk.full():
        go_on.touch()
        give_up = time.monotonic() + 200
        while alive(supervisor):
            assert time.monotonic() < give_up, "the leg's job does not end"
            time.sleep(0.05)
        if not saves:
            shutil.rmtree(machine.home.parent / "node")
            (machine.home.parent / "node").mkdir()
    run.until(lambda run: (run.folder / "params" / "done.json").exists(), within=120)
    shown = run.run.show()
    assert (shown["state"], shown["legs"][0]["end"]) == ("finished", "done"), shown
    assert not [event for event in run.events("started") if event["leg"] != 1] or saves, "there is nothing left to train"
    assert shown["checkpoints"][-1]["step"] == (19 if saves else 18)
    if saves:
        assert sorted(steps_printed(run.run)) == list(range(20))
