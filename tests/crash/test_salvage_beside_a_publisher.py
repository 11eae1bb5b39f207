"""A supervisor is killed and its publisher lives on, while the next leg on that node carries over what was left. Nothing may be lost.

`ONWARD_SALVAGES=100 pytest tests/crash/test_salvage_beside_a_publisher.py` does it a hundred times, and prints what happened.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onward.checkpoints.manifest import verify
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.unpublished import unpublished
from onward.clock import SystemClock
from onward.errors import CheckpointDamaged
from onward.model import events as ev
from onward.model.checkpoint import CheckpointName
from onward.model.spec import spec_to_json
from onward.rundir.journal import Journal, read_run
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.run import TrainingRun
from onward.supervisor.disk.salvage import salvage
from onward.supervisor.processes.child import start_helper
from tests.histories import make_spec

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("ONWARD_SALVAGES", "8"))
FILES, SIZE = 24, 1 << 18


@pytest.fixture(scope="module")
def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def a_leg(folder: Path, pid: int) -> tuple[RunDir, LegLocal, TrainingRun]:
    dir, local = RunDir(folder / "run"), LegLocal(folder / "local" / "leg-0001")
    dir.make()
    local.make()
    dir.spec.write_text(json.dumps(spec_to_json(make_spec())))
    dir.claim(1).write_text(json.dumps({"job": "7", "host": socket.gethostname(), "pid": pid}))
    Journal(dir.leg_journal(1)).write(ev.Claimed(leg=1, at=1.0, job="7", hosts=["n"], deadline=None, local=str(local.path)))
    run = TrainingRun(folder=dir.path, leg=1, checkpoints=local.checkpoints, spool=local.spool, resume=None, by_hand=False)
    return dir, local, run


def save(run: TrainingRun, step: int) -> None:
    with run.checkpoint(step) as folder:
        for number in range(FILES):
            (folder / f"part-{number}").write_bytes(os.urandom(SIZE))


def one_round(folder: Path, dead: int, pause: float) -> str:
    """Returns what was wrong, or nothing."""
    dir, local, run = a_leg(folder, dead)
    save(run, 10)
    command = [sys.executable, "-c", "import sys; from onward.supervisor.entry import main; sys.exit(main(sys.argv[1:]))"]
    publisher = start_helper([*command, "stage", str(dir.path), "1", str(local.path)], env=os.environ)
    assert publisher.stdin and publisher.stdout
    try:
        assert "publishing" in publisher.stdout.readline()
        save(run, 20)
        time.sleep(pause)
        publisher.stdin.close()  # the supervisor is killed
        dir.claim(2).write_text(json.dumps({"job": "8", "host": socket.gethostname(), "pid": os.getpid()}))
        salvage(dir, read_run(dir), leg=2, journal=Journal(dir.leg_journal(2)), clock=SystemClock())
        restored = max(published_names_of(dir.checkpoints), default=None)  # what leg 2 starts from
        publisher.wait(60)
    finally:
        publisher.kill()
        publisher.wait()
        publisher.stdout.close()
    after = max(published_names_of(dir.checkpoints), default=None)
    if restored != CheckpointName(1, 20):
        return f"leg 2 starts from {restored}, and {after} was there in the end"
    try:
        verify(dir.checkpoints / str(restored))
    except CheckpointDamaged as error:
        return f"the newest checkpoint is damaged: {error}; on the node: {unpublished(local.checkpoints, dir.checkpoints, leg=1)}"
    hidden = [entry for entry in os.listdir(dir.checkpoints) if entry.startswith(".")]
    if hidden:
        return f"left behind: {hidden}"
    return f"{local.path} is left" if local.path.exists() else ""


def test_nothing_is_lost_when_a_leg_is_salvaged_beside_its_living_publisher(tmp_path: Path, dead: int) -> None:
    chance = random.Random(13)
    wrong = {}
    for number in range(ROUNDS):
        if problem := one_round(tmp_path / str(number), dead, pause=chance.uniform(0.0, 0.12)):
            wrong[number] = problem
    print(f"{ROUNDS} salvages beside a living publisher: {len(wrong)} went wrong")
    assert not wrong
