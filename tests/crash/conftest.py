"""A person with one machine: runs on the local scheduler, in a folder and a queue of the test's own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onward.errors import OnwardError
from onward.model.spec import Cluster
from onward.schedulers.base import Scheduler
from onward.schedulers.local.scheduler import LocalScheduler
from onward.schedulers.registry import scheduler_for
from onward.schedulers.state_folder import state_folder
from tests.run_records import run_record

_ASKED_EVERY = 5.0  # seconds: it repairs runs, too
PRELUDE = "import json, os, sys, time\nimport onward\n"


@dataclass(kw_only=True)
class Machine:
    home: Path
    environment: dict[str, str]

    def onward(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "onward", *argv]
        done = subprocess.run(command, cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=120)
        if check and done.returncode:
            pytest.fail(f"onward {' '.join(argv)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def scheduler(self, cluster: Cluster) -> Scheduler:
        """With this machine's queue: a local scheduler finds its own by the environment of its process."""
        state = state_folder(self.environment) / f"local-{socket.gethostname()}"
        return LocalScheduler(state) if cluster.scheduler == "local" else scheduler_for(cluster)

    def submit(self, script: str, *flags: str, name: str = "train", prelude: str = PRELUDE, arguments: tuple[str, ...] = ()) -> LocalRun:
        (self.home / f"{name}.py").write_text(prelude + script)
        command = ("submit", "--json", "--cluster", "local", "--name", name, *flags, "--", sys.executable, f"{name}.py", *arguments)
        body = json.loads(self.onward(*command).stdout)
        return LocalRun(machine=self, id=body["id"], folder=Path(body["folder"]))


@dataclass(kw_only=True)
class LocalRun:
    machine: Machine
    id: str
    folder: Path

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.machine.onward("show", self.id, "--json").stdout)
        return shown

    def until(self, holds: Callable[[dict[str, Any]], object], *, within: float = 60) -> dict[str, Any]:
        """Until the run's record says so, which is mostly read without a process: what is to be killed then is not gone yet."""
        give_up, ask = time.monotonic() + within, time.monotonic() + _ASKED_EVERY
        while True:
            asked = time.monotonic() >= ask
            shown = self.show() if asked else self._shown_here()
            if holds(shown):
                return shown
            if asked:
                ask = time.monotonic() + _ASKED_EVERY
            if time.monotonic() > give_up:
                log = self.folder / "logs" / "supervisor.log"
                pytest.fail(f"did not come within {within} s:\n{json.dumps(shown, indent=1)}\n{log.read_text() if log.exists() else ''}")
            time.sleep(0.2)

    def _shown_here(self) -> dict[str, Any]:
        try:
            return run_record(self.folder, self.machine.environment, self.machine.scheduler)
        except (OnwardError, OSError):
            return self.show()

    def until_over(self, *, within: float = 90) -> dict[str, Any]:
        self.until(lambda r: r["state"] in ("finished", "failed", "cancelled"), within=within)
        return self.show()

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (line for path in sorted((self.folder / "journal").glob("*.jsonl")) for line in path.read_text().splitlines())
        return [event for event in map(_parsed, lines) if event.get("kind") == kind]

    def training_pid(self, leg: int) -> int:
        self.until(lambda _: [e for e in self.events("started") if e["leg"] == leg])
        return int(next(e["pid"] for e in self.events("started") if e["leg"] == leg))

    def supervisor_pid(self, leg: int) -> int:
        self.until(lambda _: [e for e in self.events("claimed") if e["leg"] == leg])
        return int(json.loads((self.folder / "params" / "claims" / f"leg-{leg:04d}.json").read_text())["pid"])

    def output(self, stream: str = "out") -> str:
        return "".join(path.read_text() for path in sorted((self.folder / "logs").glob(f"leg-*.{stream}")))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "SLURM_"))},
        "ONWARD_ROOT": str(tmp_path / "runs"),
        "ONWARD_STATE_DIR": str(tmp_path / "state"),
        "TMPDIR": str(tmp_path / "node"),
    }
    home = tmp_path / "home"
    for folder in (home, tmp_path / "node"):
        folder.mkdir()
    machine = Machine(home=home, environment=environment)
    yield machine
    for folder in Path(environment["ONWARD_ROOT"]).glob("*_*_*"):
        if not (folder / "params" / "done.json").exists():
            machine.onward("cancel", str(folder), check=False)
    wait_for_the_keeper(tmp_path / "state")


def _parsed(line: str) -> dict[str, Any]:
    """Empty for a line that a full disk cut off, or that is still being written."""
    try:
        event: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return event


def wait_for_the_keeper(state: Path) -> None:
    """Nothing may outlive its test: the keeper leaves by itself when its queue is empty; what does not is ended."""
    give_up = time.monotonic() + 15
    while pids := [pid for pid, words in _processes() if str(state) in words]:
        if time.monotonic() > give_up:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            pytest.fail("the local queue's keeper did not leave")
        time.sleep(0.2)


def _processes() -> list[tuple[int, str]]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((int(process.name), (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            continue
    return found
