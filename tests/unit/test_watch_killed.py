"""A training that was killed may have been in the middle of a save: what it was writing is not whole."""

from __future__ import annotations

import io
import os
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.watching import folder_look
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import ManualClock
from onward.model.spec import CheckpointRule
from onward.sdk.run import TrainingRun
from onward.supervisor.leg import publisher_process
from onward.supervisor.leg.after_training import was_cut_short

LONG_AGO = 1_000_000.0
KILLED = LONG_AGO + 1000.0


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("data.pkl", b"x" * 100)
    return content.getvalue()


class Leg:
    def __init__(self, folder: Path) -> None:
        self.local, self.store = folder / "local", folder / "store"
        self.local.mkdir()
        self.clock = ManualClock(KILLED)
        watcher = SaveWatcher(self.local)
        self.publisher = CheckpointPublisher(
            watcher, self.store, leg=1, rule=CheckpointRule(), resumed_step=None, progress=lambda: (None, {}), clock=self.clock
        )

    def put(self, *files: str, content: bytes = b"x", at: float = LONG_AGO) -> None:
        for name in files:
            (self.local / name).write_bytes(content)
            os.utime(self.local / name, (at, at))

    def killed(self, *, later: float = 0.0) -> list[str]:
        self.clock.sleep(later)
        return [report.reason for report in self.publisher.work(closed=True, killed_at=KILLED) if report.kind == "refused"]

    def published(self) -> list[int]:
        return [name.step for name in published_names_of(self.store)]


@pytest.fixture
def leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leg:
    monkeypatch.setattr(folder_look, "open_for_writing", lambda *_, **__: frozenset())
    return Leg(tmp_path)


def test_a_file_that_a_killed_training_was_writing_is_not_published(leg: Leg) -> None:
    leg.put("model_100.bin")
    list(leg.publisher.work())
    leg.put("model_200.bin", content=b"half", at=KILLED - 0.1)
    said = leg.killed(later=60.0)
    assert leg.published() == [100], "however late the last look comes"
    assert len(said) == 1
    assert "step 200" in said[0]
    assert "killed or failed while it was being written" in said[0]


def test_one_whose_save_was_over_before_the_kill_is_published(leg: Leg) -> None:
    leg.put("model_100.bin")
    list(leg.publisher.work())
    leg.put("model_200.bin", at=KILLED - 3.0)
    assert leg.killed() == []
    assert leg.published() == [100, 200]


def test_a_file_that_was_open_before_the_kill_is_not_whole_however_quiet(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    leg.put("model_100.bin")
    list(leg.publisher.work())
    leg.put("model_200.bin", content=b"half", at=KILLED - 5.0)
    with monkeypatch.context() as patched:
        patched.setattr(folder_look, "open_for_writing", lambda *_, **__: frozenset({str(leg.local / "model_200.bin")}))
        list(leg.publisher.work())
    assert "model_200.bin is not complete" in leg.killed()[0]
    assert leg.published() == [100]


def test_a_file_whose_format_has_an_end_is_whole_right_before_the_kill(leg: Leg) -> None:
    leg.put("model_100.pt", content=zipped())
    list(leg.publisher.work())
    leg.put("model_200.pt", content=zipped(), at=KILLED)
    leg.killed()
    assert leg.published() == [100, 200]


def test_the_first_save_ever_is_not_known_to_be_whole_right_before_the_kill(leg: Leg) -> None:
    leg.put("model_100.pt", content=zipped(), at=KILLED - 5.0)
    assert len(leg.killed()) == 1, "optim_100.pt may have been next"
    assert leg.published() == []


def test_a_save_in_place_that_the_kill_interrupted_is_not_published(leg: Leg) -> None:
    leg.put("model.bin", "optim.bin", at=KILLED - 500.0)
    list(leg.publisher.work())
    first = leg.published()
    leg.put("model.bin", "optim.bin", content=b"new", at=KILLED - 0.5)
    leg.killed()
    assert leg.published() == first != []


def test_a_training_that_left_by_itself_has_written_all(leg: Leg) -> None:
    leg.put("model_100.bin", at=KILLED)
    list(leg.publisher.work(closed=True))
    assert leg.published() == [100]


def test_what_run_checkpoint_committed_is_whole_whatever_came_next(leg: Leg, tmp_path: Path) -> None:
    run = TrainingRun(folder=tmp_path, leg=1, checkpoints=leg.local, spool=tmp_path / "spool", resume=None, by_hand=False)
    with run.checkpoint(7) as folder:
        (folder / "w").write_bytes(b"x")
    assert leg.killed() == []
    assert leg.published() == [7]


@pytest.mark.parametrize(
    ("code", "asked", "ended", "cut"),
    [
        (0, False, False, False),
        (75, True, True, False),
        (1, False, False, True),  # no space left on the node's disk
        (1, True, False, True),
        (-9, False, False, True),
        (137, True, False, True),
        (143, True, False, False),  # it caught SIGTERM, and saved
        (143, False, False, True),
        (143, True, True, True),
        (-15, True, True, True),
    ],
)
def test_a_training_that_failed_or_was_killed_may_have_been_in_the_middle_of_a_save(code: int, asked: bool, ended: bool, cut: bool) -> None:
    assert was_cut_short(code, asked=asked, ended=ended) is cut


# ── how the publisher's process hears of it ──────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "killed_at"),
    [("left\n", None), ("killed 50.0\n", 50.0), ("killed 170.0\n", 100.0), ("", 100.0), ("killed\n", 100.0), ("le", 100.0)],
)
def test_only_a_supervisor_that_says_so_vouches_for_the_last_files(said: str, killed_at: float | None) -> None:
    assert publisher_process._killed_at(said, now=100.0) == killed_at


@pytest.mark.parametrize(("killed_at", "said"), [(None, "left\n"), (12.5, "killed 12.5\n")])
def test_the_supervisor_says_how_the_training_went(tmp_path: Path, killed_at: float | None, said: str) -> None:
    heard = tmp_path / "heard"
    program = f"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read())"
    process = publisher_process.PublisherProcess([sys.executable, "-c", program], env=os.environ, woken=threading.Event())
    process.drain(until=float("inf"), killed_at=killed_at)
    assert heard.read_text() == said
    assert not process.cut


def test_a_publisher_that_cannot_be_started_at_the_end_is_started_again_until_its_storage_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More often than a publisher that dies of a mistake of its own would need to be."""
    monkeypatch.setattr(publisher_process, "_RESTART_PAUSE", 0.01)
    monkeypatch.setattr(publisher_process, "_LONGEST_RESTART_PAUSE", 0.1)
    starts = tmp_path / "starts"
    program = f"import sys; file = open({str(starts)!r}, 'a+'); file.write('x'); file.flush(); sys.exit(0 if file.tell() > 5 else 2)"
    process = publisher_process.PublisherProcess([sys.executable, "-c", program], env=os.environ, woken=threading.Event())
    process.drain(until=float("inf"))
    assert not process.cut
    assert starts.read_text() == "x" * 6


def test_a_publisher_that_dies_again_and_again_is_given_ever_more_time() -> None:
    woken = threading.Event()
    process = publisher_process.PublisherProcess([sys.executable, "-c", "raise SystemExit(2)"], env=os.environ, woken=woken)
    now = 1000.0
    waits: list[float] = []
    while len(waits) < 7:
        process._process.wait()
        began = now
        while not process._restart_in_time(now):
            now += 0.5
        waits.append(now - began)
    process.drain(until=0.0)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_publisher_that_dies_at_the_end_has_left_something_to_publish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_process, "_RESTARTS_AT_END", 0.0)
    process = publisher_process.PublisherProcess(
        [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], env=os.environ, woken=threading.Event()
    )
    process.drain(until=float("inf"))
    assert process.cut
