"""Supervisors of real jobs are killed alone, again and again, while a watch over /proc tells what of each leg lives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.conftest import RunOnBed

# Saves often, and starts a process in a session of its own.
TRAINING = """
import json, subprocess, sys, time
import onward
subprocess.Popen(["sleep", "900"], start_new_session=True)
run = onward.init()
saved = run.resume()
step = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
while True:
    time.sleep(0.1)
    run.log({"loss": 1.0}, step=step)
    if step % 3 == 2:
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({"step": step}))
    if run.should_stop():
        sys.exit(75)
    step += 1
"""
LOOK_SECONDS = 0.05

Leg = tuple[str, int]  # the run's id and the leg's number


@dataclass
class Figures:
    kills: int = 0
    most_together: float = 0.0  # seconds for which two legs of one run had living processes
    slowest_end: float = 0.0  # seconds from a kill until nothing of that leg lived
    folders_removed: list[str] = field(default_factory=list)  # of living trainings

    def __str__(self) -> str:
        return (
            f"{self.kills} supervisors killed alone: two trainings of one run alive for at most {self.most_together:.2f} s, "
            f"all of a leg gone {self.slowest_end:.2f} s after the kill at the latest, "
            f"{len(self.folders_removed)} folders of living trainings removed"
        )


class Watch:
    """Looks at every process of this machine, many times a second."""

    def __init__(self, runs: Sequence[RunOnBed]) -> None:
        self._ids = {run.id for run in runs}
        self.figures = Figures()
        self._killed: dict[Leg, float] = {}
        self._together_since: dict[str, float] = {}
        self._alive: dict[Leg, set[int]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    def lives(self, leg: Leg) -> bool:
        return bool(self._alive.get(leg))

    def killed(self, leg: Leg) -> None:
        self._killed[leg] = time.monotonic()
        self.figures.kills += 1

    def all_ended(self) -> bool:
        return not self._killed

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look(time.monotonic())

    def _look(self, now: float) -> None:
        found: dict[Leg, set[int]] = {}
        for entry in os.listdir("/proc"):
            mark = variables(int(entry)) if entry.isdecimal() else {}
            if mark.get("ONWARD_RUN_ID") in self._ids and "ONWARD_LEG" in mark:
                found.setdefault((mark["ONWARD_RUN_ID"], int(mark["ONWARD_LEG"])), set()).add(int(entry))
                folder = mark.get("ONWARD_CHECKPOINT_DIR", "/")
                if not os.path.isdir(folder) and variables(int(entry)) == mark:
                    self.figures.folders_removed.append(folder)
        self._alive = found
        for run in self._ids:
            legs = [leg for id, leg in found if id == run]
            if len(legs) > 1:
                since = self._together_since.setdefault(run, now)
                self.figures.most_together = max(self.figures.most_together, now - since + LOOK_SECONDS)
            else:
                self._together_since.pop(run, None)
        for leg, at in list(self._killed.items()):
            if leg not in found:
                self.figures.slowest_end = max(self.figures.slowest_end, now - at)
                del self._killed[leg]


def variables(pid: int) -> dict[str, str]:
    """Empty once it is dead."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(os.fsdecode(pair).split("=", 1) for pair in pairs if b"=" in pair)


def kill_supervisors(runs: Sequence[RunOnBed], *, each: int, within: float) -> Figures:
    """Of every run, `each` legs: once a leg has published something, its supervisor gets SIGKILL, and nothing else does."""
    watch = Watch(runs)
    left = dict.fromkeys((run.id for run in runs), each)
    last = dict.fromkeys((run.id for run in runs), 0)
    give_up = time.monotonic() + within
    try:
        while any(left.values()) or not watch.all_ended():
            assert time.monotonic() < give_up, f"{left} are still to be killed, after {watch.figures}\n" + "\n".join(r.log() for r in runs)
            for run in runs:
                published = [event["leg"] for event in run.events() if event["kind"] == "published"]
                leg = max(published, default=0)
                if not left[run.id] or leg <= last[run.id] or not watch.lives((run.id, leg)):
                    continue
                claim = run.folder / "params" / "claims" / f"leg-{leg:04d}.json"
                watch.killed((run.id, leg))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(json.loads(claim.read_text())["pid"]), signal.SIGKILL)
                left[run.id], last[run.id] = left[run.id] - 1, leg
            time.sleep(0.1)
        for run in runs:  # the leg after the last kill trains too
            while not any(watch.lives((run.id, leg)) for leg in range(last[run.id] + 1, last[run.id] + 5)):
                assert time.monotonic() < give_up, f"{run.id} does not go on:\n{run.log()}"
                time.sleep(0.1)
    finally:
        watch.end()
    return watch.figures
