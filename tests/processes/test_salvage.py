from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from onward.checkpoints.manifest import verify
from onward.checkpoints.publishing.publish import publish, remove_partials
from onward.checkpoints.restoring.newest import published_names_of
from onward.clock import ManualClock, SystemClock
from onward.model import events as ev
from onward.model.checkpoint import CheckpointName
from onward.model.run import LegEnd
from onward.model.spec import CheckpointRule, spec_to_json
from onward.rundir.journal import Journal, read_events, read_run
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks
from onward.sdk.run import TrainingRun
from onward.supervisor.disk import salvage as salvaging
from onward.supervisor.disk.lock import locked_folder
from onward.supervisor.disk.owner import OWNER, mark_as_own, owner_of, surely_gone
from onward.supervisor.disk.salvage import carry_over, salvage
from onward.supervisor.disk.salvage_share import SalvageShare
from onward.supervisor.entry import main
from onward.supervisor.processes.survivors import leg_mark
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
        self.run = TrainingRun(
            folder=self.dir.path, leg=1, checkpoints=self.local.checkpoints, spool=self.local.spool, resume=None, by_hand=False
        )
        self.run.log({"loss": 0.5}, step=20)
        self.save(20)
        self.local.log(1, "err").write_text("Killed\n")
        (self.local.checkpoints / "half_30.pt").write_text("half")

    def save(self, step: int) -> None:
        with self.run.checkpoint(step) as folder:
            (folder / "w").write_bytes(b"w" * step)

    def salvage(self, *, leg: int = 2, share: SalvageShare | None = None) -> None:
        salvage(self.dir, read_run(self.dir), leg=leg, journal=Journal(self.dir.leg_journal(leg)), clock=SystemClock(), share=share)

    def told(self) -> list[str]:
        return [event.text for event in read_events(self.dir) if isinstance(event, ev.Warned)]


class PassesWhileCopying(ManualClock):
    """An hour is over as soon as a first byte has reached the store."""

    def __init__(self, store: Path) -> None:
        super().__init__(0.0)
        self._store = store

    def now(self) -> float:
        if any(self._store.glob(".leg-*")):
            self.sleep(3600.0)
        return super().now()


def test_what_a_killed_leg_left_is_carried_over_and_cleared_away(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
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


def test_salvage_ends_with_its_share_of_the_leg_and_says_so(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    clock = PassesWhileCopying(wreck.dir.checkpoints)
    wreck.salvage(share=SalvageShare.of_leg(240.0, clock))
    assert published_names_of(wreck.dir.checkpoints) == []
    [words] = wreck.told()
    assert words.startswith(f"storing what leg 1 left on {socket.gethostname()} was stopped after 60 s, its share of this leg")
    assert f"the rest is in {wreck.local.path}. The next leg there tries again, or run there: python3 " in words
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
    assert not wreck.local.path.exists()


@pytest.mark.parametrize(
    ("left", "seconds"), [(86400.0, 21600.0), (600.0, 150.0), (180.0, 60.0), (60.0, 30.0), (-5.0, 0.0), (None, 3600.0)]
)
def test_salvage_has_a_quarter_of_a_leg_and_of_a_short_one_no_more_than_half(left: float | None, seconds: float) -> None:
    clock = ManualClock(1000.0)
    share = SalvageShare.of_leg(None if left is None else 1000.0 + left, clock)
    assert (share.seconds, share.until) == (seconds, 1000.0 + seconds)


def test_pipes_sockets_and_links_hold_nothing_up_and_are_told(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    secret = tmp_path / "secret"
    secret.write_text("not ours to copy")
    [committed] = wreck.local.checkpoints.glob("step-*")
    wreck.local.artifacts.mkdir(exist_ok=True)
    for folder in (committed, wreck.local.artifacts, wreck.local.logs):
        os.mkfifo(folder / "pipe")
    os.mknod(committed / "socket", stat.S_IFSOCK | 0o600)
    for folder in (wreck.local.artifacts, wreck.local.logs):
        (folder / "link").symlink_to(secret)
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
    assert not wreck.local.path.exists()
    assert not [path for path in wreck.dir.path.rglob("*") if path.name in ("pipe", "socket", "link")]
    [words] = wreck.told()
    assert words.startswith(f"not stored, because only files are: {committed}/")
    assert words.endswith(" and 4 more pipes, sockets, devices or links")


def test_a_leg_whose_process_lives_is_left_alone(tmp_path: Path) -> None:
    wreck = Wreck(tmp_path, pid=os.getpid())
    wreck.salvage()
    assert wreck.local.path.exists() and published_names_of(wreck.dir.checkpoints) == []


def test_a_leg_of_another_node_is_left_alone(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead, host="another-node")
    wreck.salvage()
    assert wreck.local.path.exists() and published_names_of(wreck.dir.checkpoints) == []


def test_a_leg_does_not_salvage_itself_or_a_later_one(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.salvage(leg=1)
    assert wreck.local.path.exists()


def test_a_checkpoint_that_finds_no_room_is_not_thrown_away(tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    with monkeypatch.context() as full:
        refuse_room(full)
        wreck.salvage()
    assert published_names_of(wreck.dir.checkpoints) == []
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
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


# ── shares, and other nodes' folders ──────────────────────────────────────────


def commit(local: LegLocal, step: int, rank: int, *, world: int) -> None:
    partial = partial_share(local.checkpoints, step, rank)
    partial.mkdir(parents=True)
    (partial / f"{rank}.pt").write_text("x")
    commit_share(partial, local.checkpoints, step, Ranks(rank, world), {"seconds": 0.1, "metrics": {}})


def test_shares_of_a_killed_leg_that_all_lie_on_this_node_are_published(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    for rank in range(4):
        commit(wreck.local, 30, rank, world=4)
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20, 30]
    assert sorted(verify(wreck.dir.checkpoints / "leg-0001.step-00000030").files) == ["0.pt", "1.pt", "2.pt", "3.pt"]
    assert [event.step for event in read_run(wreck.dir).legs[1].published] == [10, 20, 30]
    assert not wreck.local.path.exists()


def test_shares_whose_others_lie_on_other_nodes_are_kept_for_the_leg_that_finds_those(tmp_path: Path, dead: int) -> None:
    wreck, other = Wreck(tmp_path, pid=dead), LegLocal(tmp_path / "elsewhere" / "leg-0001.node-1")
    commit(wreck.local, 30, 0, world=2)
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
    remove_partials(wreck.dir.checkpoints, before_leg=2)  # as the publisher of the next leg does
    other.make()
    commit(other, 30, 1, world=2)
    for _ in carry_over(wreck.dir, CheckpointRule(), other, leg=1, by_leg=2, clock=SystemClock()):
        pass  # as the agent on that node does
    wreck.salvage(leg=3)
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20, 30]
    assert 30 in [event.step for event in read_run(wreck.dir).legs[1].published]


def test_what_a_newer_published_checkpoint_supersedes_is_not_copied_and_goes(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    (tmp_path / "w").write_text("w")
    publish({"w": tmp_path / "w"}, wreck.dir.checkpoints, CheckpointName(2, 5), created=1.0)
    wreck.salvage(leg=3)
    assert [str(name) for name in published_names_of(wreck.dir.checkpoints)] == ["leg-0002.step-00000005"]
    assert not wreck.local.path.exists()


def test_a_folder_whose_number_belongs_to_another_process_by_now_is_abandoned(tmp_path: Path) -> None:
    wreck = Wreck(tmp_path, pid=os.getpid())
    mark_as_own(wreck.local.path)
    mark = json.loads((wreck.local.path / OWNER).read_bytes())
    (wreck.local.path / OWNER).write_text(json.dumps({**mark, "started": 1}))
    wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        ({}, False),
        ({"boot": "another"}, True),
        ({"pid": 2**22 + 1}, True),
        ({"pid": 2**22 + 1, "machine": "another"}, False),
        ({"pid": 2**22 + 1, "namespace": "pid:[1]"}, False),
        ({"pid": "x"}, False),
    ],
)
def test_a_process_is_gone_only_where_that_can_be_told(tmp_path: Path, change: dict[str, object], gone: bool) -> None:
    mark_as_own(tmp_path)
    mark = owner_of(tmp_path)
    assert mark is not None and surely_gone({**mark, **change}) is gone


def test_a_process_that_nobody_has_waited_for_yet_is_gone(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        mark_as_own(tmp_path)
        mark = owner_of(tmp_path)
        started = int(Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[19])
        assert mark is not None and surely_gone({**mark, "pid": ended.pid, "started": started})
    finally:
        ended.wait()


# ── what a leg that ended as planned had no time to publish ───────────────────


def test_files_of_a_training_that_left_by_itself_are_published_by_the_next_leg_on_that_node(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    (wreck.local.checkpoints / "half_30.pt").unlink()
    (wreck.local.checkpoints / "model_40.pt").write_text("all of it")
    wreck.local.left.write_text("0.0")
    mark_as_own(wreck.local.path)
    reports = list(carry_over(wreck.dir, CheckpointRule(), wreck.local, leg=1, by_leg=2, clock=SystemClock()))
    assert ("published", 40) in [(report.kind, report.step) for report in reports]
    assert max(published_names_of(wreck.dir.checkpoints)) == CheckpointName(1, 40)
    assert not wreck.local.path.exists()


def test_files_of_a_training_that_was_killed_are_not_taken_for_whole(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    reports = list(carry_over(wreck.dir, CheckpointRule(), wreck.local, leg=1, by_leg=2, clock=SystemClock()))
    assert [(report.kind, report.step) for report in reports] == [("published", 20)]


def test_the_newest_is_published_first_and_older_ones_need_not_be(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    wreck.save(25)
    reports = list(carry_over(wreck.dir, CheckpointRule(), wreck.local, leg=1, by_leg=2, clock=SystemClock()))
    assert [(report.kind, report.step) for report in reports] == [("published", 25)]
    assert not wreck.local.path.exists()


def test_what_a_leg_left_on_a_node_can_be_published_by_hand_there(tmp_path: Path, dead: int, capsys: pytest.CaptureFixture[str]) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    assert main(["salvage", str(wreck.dir.path)]) == 0
    assert capsys.readouterr().out == "published leg-0001.step-00000020\n"
    assert read_run(wreck.dir).legs[1].last_published == 20
    assert main(["salvage", str(wreck.dir.path)]) == 0
    assert "was unpublished" in capsys.readouterr().out


def test_of_several_wrecks_the_newest_is_published_first_and_the_others_are_superseded(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    local = LegLocal(tmp_path / "local" / "leg-0002")
    local.make()
    wreck.dir.claim(2).write_text(json.dumps({"job": "8", "host": socket.gethostname(), "pid": dead}))
    claimed = ev.Claimed(leg=2, at=3.0, job="8", hosts=["n"], deadline=None, local=str(local.path))
    Journal(wreck.dir.leg_journal(2)).write(claimed)
    run = TrainingRun(folder=wreck.dir.path, leg=2, checkpoints=local.checkpoints, spool=local.spool, resume=None, by_hand=False)
    with run.checkpoint(50) as folder:
        (folder / "w").write_bytes(b"w")
    wreck.salvage(leg=3)
    assert published_names_of(wreck.dir.checkpoints) == [CheckpointName(2, 50)], "a store may have room for one only"
    assert not wreck.local.path.exists() and not local.path.exists()


# ── what of an earlier leg still runs ─────────────────────────────────────────

HOLDS = """
import sys, time
from pathlib import Path
from onward.supervisor.disk.lock import locked_folder
with locked_folder(Path(sys.argv[1])) as alone:
    print(alone, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def running(code: str, *argv: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A Python that has said its first line."""
    command = [sys.executable, "-c", code, *argv]
    with subprocess.Popen(command, env={**os.environ, **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def claimed_by_leg_2(wreck: Wreck) -> None:
    wreck.dir.claim(2).write_text(json.dumps({"job": "8", "host": socket.gethostname(), "pid": os.getpid()}))


def test_the_training_of_a_dead_leg_is_ended_before_its_folder_is_touched(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    mark = leg_mark(read_run(wreck.dir).spec.id, 1)
    with running("print(flush=True); import time; time.sleep(600)", env=mark) as training:
        claimed_by_leg_2(wreck)
        wreck.salvage()
        assert training.wait(20) == -signal.SIGKILL
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
    assert not wreck.local.path.exists()


def test_the_training_of_an_earlier_leg_is_ended_also_where_its_supervisor_lives(tmp_path: Path) -> None:
    """A leg that has claimed has taken over: two of one run never train at once."""
    wreck = Wreck(tmp_path, pid=os.getpid())
    mark = leg_mark(read_run(wreck.dir).spec.id, 1)
    with running("print(flush=True); import time; time.sleep(600)", env=mark) as training:
        claimed_by_leg_2(wreck)
        wreck.salvage()
        assert training.wait(20) == -signal.SIGKILL
    assert wreck.local.path.exists(), "its supervisor looks after the folder"


def test_by_hand_a_leg_whose_supervisor_lives_is_not_disturbed(tmp_path: Path) -> None:
    wreck = Wreck(tmp_path, pid=os.getpid())
    with running("print(flush=True); import time; time.sleep(600)", env=leg_mark(read_run(wreck.dir).spec.id, 1)) as training:
        assert main(["salvage", str(wreck.dir.path)]) == 0
        assert training.poll() is None
    assert wreck.local.path.exists()


def test_a_folder_whose_training_cannot_be_ended_is_left_alone(tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    monkeypatch.setattr(salvaging, "end_survivors", lambda run_id, legs: set(legs))
    wreck.salvage()
    assert published_names_of(wreck.dir.checkpoints) == [] and (wreck.local.checkpoints / "half_30.pt").exists()


def test_a_publisher_that_still_works_is_waited_for(tmp_path: Path, dead: int) -> None:
    wreck = Wreck(tmp_path, pid=dead)
    with running(HOLDS, str(wreck.local.path)) as publisher:
        claimed_by_leg_2(wreck)
        salvaging_thread = threading.Thread(target=wreck.salvage)
        salvaging_thread.start()
        assert salvaging_thread.is_alive() and published_names_of(wreck.dir.checkpoints) == []
        publisher.communicate("end\n")
        salvaging_thread.join(20)
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]


def test_a_publisher_that_hangs_is_ended_by_the_leg_that_has_taken_over(tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvaging, "_PUBLISHER_PATIENCE", 0.2)
    wreck = Wreck(tmp_path, pid=dead)
    with running(HOLDS, str(wreck.local.path)) as publisher:
        wreck.salvage()
        assert publisher.poll() is None and published_names_of(wreck.dir.checkpoints) == [], "nobody has taken over: it is about to publish"
        claimed_by_leg_2(wreck)
        monkeypatch.setattr(salvaging, "_PUBLISHER_PATIENCE", 5.0)
        wreck.salvage()
        assert publisher.wait(20) == -signal.SIGKILL
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]


def test_a_folder_is_held_by_one_and_by_nobody_once_it_has_gone(tmp_path: Path) -> None:
    folder = tmp_path / "leg-0001"
    folder.mkdir()
    with locked_folder(folder) as first, locked_folder(folder) as second:
        assert first and not second
    with locked_folder(folder) as again:
        assert again
    shutil.rmtree(folder)
    with locked_folder(folder) as gone:
        assert not gone


def test_a_supervisor_that_is_still_dying_is_waited_for_by_the_leg_that_has_taken_over(tmp_path: Path) -> None:
    """As after a store that hung beyond the time limit: what lies on the node is the newest checkpoint there is."""
    with running("import time; print('here', flush=True); time.sleep(600)") as dying:
        wreck = Wreck(tmp_path, pid=dying.pid)
        mark_as_own(wreck.local.path)
        mark = json.loads((wreck.local.path / OWNER).read_bytes())
        started = int(Path(f"/proc/{dying.pid}/stat").read_text().rpartition(")")[2].split()[19])
        (wreck.local.path / OWNER).write_text(json.dumps({**mark, "pid": dying.pid, "started": started}))
        claimed_by_leg_2(wreck)
        threading.Timer(0.5, dying.kill).start()
        wreck.salvage()
    assert [name.step for name in published_names_of(wreck.dir.checkpoints)] == [20]
