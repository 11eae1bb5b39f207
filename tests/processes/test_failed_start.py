"""A leg in which something cannot start beside the training: in a process of its own, which tells what it left."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from onward.clock import SystemClock
from onward.model import events as ev
from onward.model.job import Allocation, JobId
from onward.model.spec import Cluster, spec_to_json
from onward.rundir.freeze import build_archive
from onward.rundir.journal import Journal, read_events, read_spec
from onward.rundir.layout import RunDir
from onward.supervisor.leg.beside_training import TrainingCompanions
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.train import train
from onward.supervisor.preparation.environment import local_folder, relay_variables
from onward.supervisor.stop.run_folder_watch import FolderWatch
from onward.supervisor.stop.signals import Signals
from tests.fakes import FakeScheduler
from tests.histories import make_spec

REPO = Path(__file__).resolve().parents[2]
WAIT = 60.0
LOOKERS = {"sampling", "looking for event files", "looking for the training's own checkpoints", "copying artifacts"}


def lead_a_leg(folder: Path) -> None:
    """Its last companion cannot start. Prints what the failure was, once nothing is left that should not be."""

    def cannot_start(companions: TrainingCompanions) -> FolderWatch:
        raise OSError("the run's folder is away")

    TrainingCompanions.watch_run_folder = cannot_start  # type: ignore[method-assign, assignment]
    run = RunDir(folder)
    spec, clock, journal = read_spec(run), SystemClock(), Journal(run.leg_journal(1))
    allocation = Allocation(job=JobId("7"), hosts=("node1",), deadline=clock.now() + 600)
    context = LegContext(dir=run, spec=spec, leg=1, scheduler=FakeScheduler(clock), allocation=allocation, clock=clock, journal=journal)
    local = local_folder(spec, 1, run=run)
    try:
        train(context, local, Signals())
    except OSError as error:
        journal.close()
        (started,) = [event for event in read_events(run) if isinstance(event, ev.Started)]
        port = urlsplit(relay_variables(local)["TRACKER_API"]).port
        until(lambda: not Path(f"/proc/{started.pid}").exists(), "the end of the training")
        until(lambda: not is_listening(port), "the end of the relay")
        until(lambda: LOOKERS.isdisjoint(threads()), "the end of those that look")
        print(json.dumps({"failure": str(error), "threads": threads()}))


def until(holds: Callable[[], object], what: str) -> None:
    give_up = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come"
        time.sleep(0.02)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def is_listening(port: int | None) -> bool:
    """Whether a process of this machine listens there."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.make()
    made.code.mkdir(exist_ok=True)
    cluster = Cluster(name="local", scheduler="local", local_disk=str(tmp_path / "disk"))
    made.spec.write_text(json.dumps(spec_to_json(make_spec(cluster=cluster, command=("sleep", "600")))))
    build_archive(made.supervisor)
    return made


def test_a_leg_that_fails_leaves_no_training_no_relay_and_nothing_that_looks(run: RunDir) -> None:
    words = "import sys, pathlib; from tests.processes.test_failed_start import lead_a_leg; lead_a_leg(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", words, str(run.path)]
    ended = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=5 * WAIT, check=False)
    assert ended.returncode == 0, ended.stderr
    body = json.loads(ended.stdout)
    assert body["failure"] == "the run's folder is away"
    assert "mirroring" in body["threads"]
