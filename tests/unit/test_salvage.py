from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from onward.checkpoints.find import names
from onward.checkpoints.manifest import verify
from onward.clock import SystemClock
from onward.model import event as ev
from onward.model.run import LegEnd
from onward.model.spec import spec_to_json
from onward.rundir.journal import Journal, read_run
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.run import Run
from onward.supervisor.salvage import salvage
from tests.disks import refuse_room
from tests.histories import make_spec


@pytest.fixture(scope="module")
def dead() -> int:
    """The id of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


class Wreck:
    """What leg 1 left on this node when it was killed."""

    def __init__(self, folder: Path, *, pid: int, host: str = "") -> None:
        self.dir, self.local = RunDir(folder / "run"), LegLocal(folder / "local" / "leg-0001")
        self.dir.make()
        self.local.make()
        self.dir.spec.write_text(json.dumps(spec_to_json(make_spec())))
        self.dir.claim(1).write_text(json.dumps({"job": "7", "host": host or socket.gethostname(), "pid": pid}))
        first = Journal(self.dir.leg_journal(1))
        first.write(ev.Claimed(leg=1, at=1.0, job="7", hosts=["n"], deadline=None, local=str(self.local.path)))
        first.write(ev.Published(leg=1, at=2.0, step=10, bytes=1, save_seconds=0.0, stage_seconds=0.0))
        self.run = Run(folder=self.dir.path, leg=1, checkpoints=self.local.checkpoints, spool=self.local.spool, resume=None, by_hand=False)
        self.run.log({"loss": 0.5}, step=20)
        self.save(20)
        self.local.log(1, "err").write_text("Killed\n")
        (self.local.checkpoints / "half_30.pt").write_text("half")

    def save(self, step: int) -> None:
        with self.run.checkpoint(step) as folder:
            (folder / "w").write_bytes(b"w" * step)

    def salvage(self, *, leg: int = 2) -> None:
        salvage(self.dir, read_run(self.dir), leg=leg, journal=Journal(self.dir.leg_journal(leg)), clock=SystemClock())


def test_what_a_killed_leg_left_is_carried_over_and_cleared_away(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage()
    assert [name.step for name in names(wreck.dir.checkpoints)] == [20]
    verify(wreck.dir.checkpoints / "leg-0001.step-00000020")
    assert wreck.dir.log(1, "err").read_text() == "Killed\n"
    assert len(list(wreck.dir.spool.iterdir())) == 1
    assert not wreck.local.path.exists()


def test_a_checkpoint_saved_from_a_wreck_counts_for_the_leg_that_made_it(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage()
    assert [event.step for event in read_run(wreck.dir).legs[1].published] == [10, 20]


def test_only_what_was_committed_is_surely_whole(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage()
    assert not list(wreck.dir.checkpoints.rglob("half_30.pt"))


def test_doing_it_twice_is_doing_it_once(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage()
    wreck.salvage()
    assert len(read_run(wreck.dir).legs[1].published) == 2


def test_a_leg_whose_process_lives_is_left_alone(tmp_path: Path) -> None:
    wreck = Wreck(tmp_path, pid=os.getpid())
    wreck.salvage()
    assert wreck.local.path.exists() and names(wreck.dir.checkpoints) == []


def test_a_leg_of_another_node_is_left_alone(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead, host="another-node")
    wreck.salvage()
    assert wreck.local.path.exists() and names(wreck.dir.checkpoints) == []


def test_a_leg_does_not_salvage_itself_or_a_later_one(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage(leg=1)
    assert wreck.local.path.exists()


def test_a_checkpoint_that_finds_no_room_is_not_thrown_away(tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    with monkeypatch.context() as full:
        refuse_room(full)
        wreck.salvage()
    assert names(wreck.dir.checkpoints) == []
    wreck.salvage()
    assert [name.step for name in names(wreck.dir.checkpoints)] == [20]
    assert not wreck.local.path.exists()


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.local.path.rename(tmp_path / "elsewhere")
    wreck.salvage()
    assert read_run(wreck.dir).legs[1].end is not LegEnd.DONE


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    os.chown(wreck.local.path, 12345, 12345)
    wreck.salvage()
    assert wreck.local.path.exists()
