from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.clock import ManualClock
from onward.rundir import mirror
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import LogsNotCarried, Mirror, carry
from onward.supervisor.telemetry.changed_files import ChangedPushFiles


class Killed(BaseException):
    """What the test's hand does to the mirroring in the middle of a write."""


def run_in(folder: Path) -> RunDir:
    (folder / "run").mkdir(exist_ok=True)
    return RunDir(folder / "run")


class Leg:
    """A leg's files on the node and in the run's folder."""

    def __init__(self, folder: Path) -> None:
        self.local, self.run = LegLocal(folder / "local"), run_in(folder)
        self.local.make()
        self.clock = ManualClock(1000.0)
        self.mirror = Mirror(self.local, self.run, now=self.clock.now)
        self.out, self.mirrored = self.local.log(1, "out"), self.run.log(1, "out")

    def print(self, data: bytes) -> None:
        with self.out.open("ab") as file:
            file.write(data)


@pytest.fixture
def leg(tmp_path: Path) -> Iterator[Leg]:
    made = Leg(tmp_path)
    yield made
    made.mirror.close()


def kill_after(patch: pytest.MonkeyPatch, byte: int) -> None:
    """Let `byte` bytes through, then die: part of a chunk may have been written."""
    left = byte

    def write_some(handle: int, data: bytes, offset: int) -> int:
        nonlocal left
        allowed = bytes(data)[:left]
        left -= os.pwrite(handle, allowed, offset)
        if len(allowed) < len(data):
            raise Killed
        return len(data)

    patch.setattr(mirror, "_write_at", write_some)


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(
        st.tuples(st.binary(max_size=60), st.binary(max_size=60), st.none() | st.integers(0, 80), st.booleans()), min_size=1, max_size=6
    )
)
def test_killed_anywhere_and_begun_again_nothing_is_lost_doubled_or_cut(rounds: list[tuple[bytes, bytes, int | None, bool]]) -> None:
    """Each round two files grow and are mirrored, by the publisher or the supervisor; each may be killed after any byte."""
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        leg = Leg(Path(scratch))
        source, target = leg.local.tensorboard, leg.run.tensorboard
        (source / "deep").mkdir(parents=True)
        patch.setattr(mirror, "_CHUNK", 16)
        patch.setattr(mirror, "_TURN", 40)
        patch.setattr(os, "O_DSYNC", 0)  # a disk's flush for every few bytes
        mirrors = {who: Mirror(leg.local, leg.run, now=leg.clock.now) for who in (True, False)}
        files = {"a.jsonl": b"", "deep/b": b""}
        for more_a, more_b, killed_at, who in rounds:
            files = {"a.jsonl": files["a.jsonl"] + more_a, "deep/b": files["deep/b"] + more_b}
            for name, content in files.items():
                with (source / name).open("ab") as file:
                    file.write(content[file.tell() :])
            leg.clock.sleep(7.0)
            if killed_at is None:
                mirrors[who].carry()
                assert all((target / name).read_bytes() == content for name, content in files.items() if content)
                continue
            with patch.context() as killing:
                kill_after(killing, killed_at)
                try:
                    mirrors[who].carry()
                except Killed:
                    mirrors[who].close()
                    mirrors[who] = Mirror(leg.local, leg.run, now=leg.clock.now)
            for name, content in files.items():
                there = (target / name).read_bytes() if (target / name).exists() else b""
                assert content.startswith(there)
        for one in mirrors.values():
            one.carry()
            one.close()
        assert all((target / name).read_bytes() == content for name, content in files.items() if content)
        assert leg.mirror.carry() == 0
        leg.mirror.close()


def test_a_mirrored_file_is_only_ever_appended_to(leg: Leg) -> None:
    leg.print(b"one\n")
    assert leg.mirror.carry() == 4
    inode = leg.mirrored.stat().st_ino
    leg.print(b"two\n")
    assert leg.mirror.carry() == 4
    assert leg.mirrored.read_bytes() == b"one\ntwo\n"
    assert leg.mirrored.stat().st_ino == inode


def test_a_source_shorter_than_its_twin_takes_nothing_away(leg: Leg) -> None:
    leg.run.make()
    leg.print(b"x")
    leg.mirrored.write_bytes(b"longer")
    assert leg.mirror.carry() == 0
    assert leg.mirrored.read_bytes() == b"longer"


def test_files_of_others_in_the_run_folder_are_not_touched(leg: Leg) -> None:
    leg.run.make()
    leg.run.log(2, "out").write_bytes(b"of another leg")
    leg.print(b"new")
    leg.mirror.carry()
    assert leg.run.log(2, "out").read_bytes() == b"of another leg"


def test_a_file_that_was_removed_or_replaced_is_found_again(leg: Leg) -> None:
    leg.print(b"one\n")
    leg.mirror.carry()
    leg.mirrored.unlink()
    leg.print(b"two\n")
    leg.clock.sleep(61)
    leg.mirror.carry()
    assert leg.mirrored.read_bytes() == b"one\ntwo\n"
    (leg.run.logs / "copy").write_bytes(b"one\n")
    (leg.run.logs / "copy").rename(leg.mirrored)
    leg.print(b"three\n")
    leg.clock.sleep(61)
    leg.mirror.carry()
    assert leg.mirrored.read_bytes() == b"one\ntwo\nthree\n"


def test_a_file_that_the_server_no_longer_knows_is_opened_anew(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    leg.print(b"one\n")
    leg.mirror.carry()
    real, stale = mirror._write_at, [errno.ESTALE]

    def write(handle: int, data: bytes, offset: int) -> int:
        if stale:
            number = stale.pop()
            raise OSError(number, os.strerror(number))
        return real(handle, data, offset)

    monkeypatch.setattr(mirror, "_write_at", write)
    leg.print(b"two\n")
    leg.mirror.carry()
    assert leg.mirrored.read_bytes() == b"one\ntwo\n"


def test_a_full_disk_names_the_file_and_loses_nothing_that_fits_later(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int, _data: bytes, _offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    leg.print(b"one\n")
    with monkeypatch.context() as there:
        there.setattr(mirror, "_write_at", full)
        with pytest.raises(LogsNotCarried, match=r"No space left.*leg-0001\.out"):
            leg.mirror.carry()
    leg.mirror.carry()
    assert leg.mirrored.read_bytes() == b"one\n"


def test_a_log_that_is_far_behind_holds_up_neither_records_nor_other_files(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no piece of it is large: what is read at once is bounded."""
    sizes: list[int] = []
    order: list[str] = []
    monkeypatch.setattr(mirror, "_CHUNK", 100)
    monkeypatch.setattr(mirror, "_TURN", 250)
    real = mirror._write_at

    def write(handle: int, data: bytes, offset: int) -> int:
        sizes.append(len(data))
        order.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        return real(handle, data, offset)

    monkeypatch.setattr(mirror, "_write_at", write)
    leg.print(bytes(10_000))
    leg.local.log(1, "err").write_bytes(b"said once")
    (leg.local.spool / "leg-0001.train-1.jsonl").write_bytes(b"{}\n" * 300)
    leg.mirror.carry(logs_at_most=600)
    assert (leg.run.spool / "leg-0001.train-1.jsonl").stat().st_size == 900, "records are there before the checkpoint is"
    assert leg.run.log(1, "err").read_bytes() == b"said once"
    assert 600 <= leg.mirrored.stat().st_size < 1000
    assert max(sizes) <= 100
    assert order.index("leg-0001.err") - order.index("leg-0001.out") <= 3, "at most one turn of the long one is before it"
    leg.mirror.carry()
    assert leg.mirrored.stat().st_size == 10_000


def test_not_more_files_stay_open_than_a_process_may_have(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_MOST_OPEN", 4)
    for round in range(2):
        for number in range(20):
            with (leg.local.tensorboard / f"events.{number}").open("a") as file:
                file.write("e")
        leg.mirror.carry()
        assert sum(twin.handle >= 0 for twin in leg.mirror._twins.values()) <= 4
        assert all((leg.run.tensorboard / f"events.{number}").stat().st_size == round + 1 for number in range(20))


def test_what_the_other_process_carried_is_not_written_again(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher mirrors before each checkpoint; meanwhile the supervisor has done most of it."""
    publisher = Mirror(leg.local, leg.run, now=leg.clock.now)
    leg.print(b"one\n")
    publisher.carry()
    leg.print(b"two\n")
    leg.mirror.carry()
    leg.clock.sleep(1800)
    leg.print(b"three\n")
    assert publisher.carry() == len(b"three\n")
    publisher.close()


def test_supervisor_and_publisher_mirroring_at_once_double_nothing(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), run_in(tmp_path)
    local.make()
    run.make()
    wanted = b"".join(b"line %d\n" % i for i in range(5000))

    def write() -> None:
        with local.log(1, "out").open("ab", buffering=0) as file:
            for start in range(0, len(wanted), 777):
                file.write(wanted[start : start + 777])

    writer = threading.Thread(target=write)

    def mirror_often() -> None:
        mine = Mirror(local, run)
        for _ in range(30):
            mine.carry()
        mine.close()

    carriers = [threading.Thread(target=mirror_often) for _ in range(3)]
    for thread in (writer, *carriers):
        thread.start()
    for thread in (writer, *carriers):
        thread.join()
    carry(local, run)
    assert run.log(1, "out").read_bytes() == wanted


def test_of_two_that_mirror_one_waits_for_the_other(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = 0
    most = 0

    def slowly(_handle: int, data: bytes, _offset: int) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.02)
        inside -= 1
        return len(data)

    leg.print(b"line")
    monkeypatch.setattr(mirror, "_write_at", slowly)
    carriers = [threading.Thread(target=carry, args=(leg.local, leg.run)) for _ in range(4)]
    for thread in carriers:
        thread.start()
    for thread in carriers:
        thread.join()
    assert most == 1


def test_logs_spool_and_tensorboard_reach_the_run_folder(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), run_in(tmp_path)
    local.make()
    (local.spool / "leg-0001.train-7.jsonl").write_bytes(b"{}\n")
    (local.tensorboard / "sub").mkdir()
    (local.tensorboard / "sub" / "events.out.tfevents.1").write_bytes(b"e")
    (local.checkpoints / "model.pt").write_bytes(b"not mirrored")
    carry(local, run)
    assert (run.spool / "leg-0001.train-7.jsonl").read_bytes() == b"{}\n"
    assert (run.tensorboard / "sub" / "events.out.tfevents.1").read_bytes() == b"e"
    assert not run.checkpoints.exists()


def test_a_log_that_cannot_be_written_keeps_nothing_else_back(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), run_in(tmp_path)
    local.make()
    run.make()
    for number in (1, 2):
        local.log(number, "out").write_text("said")
    (local.spool / "leg-0001.train-7.jsonl").write_text("{}\n")
    (local.tensorboard / "events").write_text("e")
    run.log(1, "out").symlink_to("/nowhere/at/all")  # in the way, for root too
    with pytest.raises(LogsNotCarried, match="leg-0001"):
        carry(local, run)
    assert (run.spool / "leg-0001.train-7.jsonl").read_text() == "{}\n"
    assert (run.tensorboard / "events").read_text() == "e"
    assert run.log(2, "out").read_text() == "said"


def test_records_that_cannot_be_written_are_not_taken_for_logs(tmp_path: Path) -> None:
    local, run = LegLocal(tmp_path / "local"), run_in(tmp_path)
    local.make()
    run.make()
    local.log(1, "out").write_text("said")
    (local.spool / "leg-0001.train-7.jsonl").write_text("{}\n")
    for path in (run.log(1, "out"), run.spool / "leg-0001.train-7.jsonl"):
        path.symlink_to("/nowhere/at/all")
    with pytest.raises(FileNotFoundError, match="train-7"):
        carry(local, run)


# ── names that a later leg uses again ─────────────────────────────────────────

NAME = "events.out.tfevents.training"


def carry_leg(folder: Path, number: int, content: bytes, *, node: str = "") -> RunDir:
    local, run = LegLocal(folder / "node" / f"leg-{number:04d}{node}"), run_in(folder)
    (local.tensorboard / "train").mkdir(parents=True, exist_ok=True)
    (local.tensorboard / "train" / NAME).write_bytes(content)
    mirror.carry(local, run)
    return run


def test_a_tensorboard_file_whose_name_a_later_leg_uses_again_is_kept_beside_the_first(tmp_path: Path) -> None:
    run = carry_leg(tmp_path, 1, b"first leg's events")
    carry_leg(tmp_path, 2, b"second")
    carry_leg(tmp_path, 2, b"second, and longer than the first leg's file has ever been")
    carry_leg(tmp_path, 3, b"third leg's events, and more")
    found = {path.name: path.read_bytes() for path in (run.tensorboard / "train").iterdir()}
    assert found == {
        NAME: b"first leg's events",
        f"{NAME}.leg-0002": b"second, and longer than the first leg's file has ever been",
        f"{NAME}.leg-0003": b"third leg's events, and more",
    }


def test_a_tensorboard_file_that_the_training_took_along_and_wrote_on_stays_one(tmp_path: Path) -> None:
    run = carry_leg(tmp_path, 1, b"one,")
    carry_leg(tmp_path, 2, b"one,two")
    assert {path.name: path.read_bytes() for path in (run.tensorboard / "train").iterdir()} == {NAME: b"one,two"}


def test_nodes_that_write_files_of_one_name_keep_theirs_apart(tmp_path: Path) -> None:
    run = carry_leg(tmp_path, 1, b"of the first node")
    carry_leg(tmp_path, 1, b"of another node", node=".node-1")
    assert sorted(path.name for path in (run.tensorboard / "train").iterdir()) == [NAME, f"{NAME}.leg-0001.node-1"]


def test_what_is_pushed_from_the_node_has_the_name_that_it_has_in_the_runs_folder(tmp_path: Path) -> None:
    run = carry_leg(tmp_path, 1, b"first leg's events")
    local = LegLocal(tmp_path / "node" / "leg-0002")
    (local.tensorboard / "train").mkdir(parents=True)
    (local.tensorboard / "train" / NAME).write_bytes(b"second")
    pushed = {found.name: found.path for found in ChangedPushFiles(run, local).files() if "tfevents" in found.name}
    assert pushed[f"results/tensorboard/train/{NAME}.leg-0002"] == local.tensorboard / "train" / NAME
    assert pushed[f"results/tensorboard/train/{NAME}"] == run.tensorboard / "train" / NAME


def test_nothing_is_carried_to_storage_that_is_not_mounted_now(leg: Leg, tmp_path: Path) -> None:
    """Files under an empty mount point are lost when it is mounted, and are taken for carried."""
    leg.print(b"one\n")
    leg.run.path.rename(tmp_path / "away")
    with pytest.raises(LogsNotCarried):
        leg.mirror.carry()
    assert not leg.run.path.exists()
    (tmp_path / "away").rename(leg.run.path)
    leg.mirror.carry()
    assert leg.mirrored.read_bytes() == b"one\n"
