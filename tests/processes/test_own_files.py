from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.model import events as ev
from onward.model.run import Leg
from onward.supervisor.own_files.linked_folders import LinkedFolders
from onward.supervisor.own_files.state_names import looks_like_state
from onward.supervisor.own_files.watch import OwnFilesWatch
from onward.supervisor.own_files.working_folder import list_state_files
from tests.benches import until


@pytest.mark.parametrize(
    "name",
    [
        *("checkpoint.pth.tar", "model_best.pth.tar", "out/last.ckpt", "weights.h5", "restart.dat", "n", "state", "params.npz"),
        *("model.json", "booster_0100.json", "lgb_model.txt", "checkpoint-500/trainer_state.json", "/scratch/ada/exp1/step_100.pt"),
    ],
)
def test_what_may_be_state_counts(name: str) -> None:
    assert looks_like_state(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "train.log",
            "leg.out",
            "events.out.tfevents.17.host",
            "metrics.jsonl",
            "history.csv",
            "train_log.txt",
            "results.txt",
            "args.json",
        ),
        *("train.py", "job.sh", "config.yaml", "loss.png", "report.html", "README.md", ".lock", "checkpoint.pt.tmp", "model.pt.part"),
        "/scratch/model/results.json",
    ],
)
def test_logs_code_pictures_and_reports_do_not(name: str) -> None:
    assert not looks_like_state(name)


@pytest.fixture
def events() -> list[ev.Event]:
    return []


class Timer:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def watch_of(folder: Path, events: list[ev.Event], timer: Timer, *processes: int, limit: float | None = 100.0) -> OwnFilesWatch:
    return OwnFilesWatch(
        folder,
        leg=3,
        limit=limit,
        processes=lambda: processes,
        ours=(folder / "of-onward",),
        write=events.append,
        clock=ManualClock(time.time()),
        timer=timer,
    )


def entries(events: list[ev.Event]) -> list[list[str]]:
    return [event.files for event in events if isinstance(event, ev.SelfSaved)]


def test_a_file_written_or_replaced_in_the_working_folder_is_told_and_one_that_was_there_is_not(
    tmp_path: Path, events: list[ev.Event]
) -> None:
    (tmp_path / "old.pt").write_bytes(b"1")
    (tmp_path / "checkpoint.pt").write_bytes(b"1")
    timer = Timer()
    watch = watch_of(tmp_path, events, timer)
    (tmp_path / "checkpoint.pt").write_bytes(b"22")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.bin").write_bytes(b"333")
    (tmp_path / "train.log").write_text("epoch 1")
    watch.look()
    assert entries(events) == []  # not yet: the folder is listed now and then
    timer.now = 11.0
    watch.look()
    [files] = entries(events)
    assert sorted(files) == ["checkpoint.pt", "out/model.bin"]
    assert isinstance(events[0], ev.SelfSaved) and events[0].leg == 3 and events[0].bytes == 5
    watch.last_look(cut=True)
    assert len(events) == 1


def test_the_last_look_tells_what_came_since_however_short_the_leg_was(tmp_path: Path, events: list[ev.Event]) -> None:
    watch = watch_of(tmp_path, events, Timer())
    (tmp_path / "checkpoint.pt").write_bytes(b"22")
    watch.last_look(cut=True)
    assert entries(events) == [["checkpoint.pt"]]


def test_the_last_saves_of_a_leg_that_was_killed_with_its_supervisor_are_told_by_the_next(tmp_path: Path, events: list[ev.Event]) -> None:
    now = time.time()
    with zipfile.ZipFile(tmp_path / "checkpoint.pth.tar", "w") as archive:
        archive.writestr("state", "of epoch 7")
    (tmp_path / "torn.pt").write_bytes((tmp_path / "checkpoint.pth.tar").read_bytes()[:30])
    (tmp_path / "older.bin").write_bytes(b"1")
    for name, ago in (("checkpoint.pth.tar", 20), ("torn.pt", 10), ("older.bin", 500)):
        os.utime(tmp_path / name, (now - ago, now - ago))
    watch = watch_of(tmp_path, events, Timer())
    killed = Leg(number=2, started=now - 100, ended=now - 5)
    watch.tell_of_killed_leg(killed)
    [saved] = events
    assert isinstance(saved, ev.SelfSaved) and (saved.leg, saved.files) == (2, ["checkpoint.pth.tar"])
    assert saved.written == pytest.approx(now - 20)
    own = ev.Ended(leg=2, at=now - 5, end="crashed", reason="as told")
    for leg in (replace(killed, self_saved=[saved]), replace(killed, own=own), replace(killed, started=None)):
        watch.tell_of_killed_leg(leg)
    watch.last_look(cut=True)
    assert len(events) == 1, "told once, and a leg that had a last word told it itself"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Opens what it is told to, and closes it when it is told the next."""
    script = "import sys\nfile = None\nfor line in sys.stdin:\n    file = line.strip() and open(line.strip(), 'ab')\n"
    script += "    file and (file.write(b'x' * 10), file.flush())\n    print('done', flush=True)\n"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def tell(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdin and process.stdout
    process.stdin.write(f"{words}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_a_file_anywhere_that_the_training_had_open_counts_once_it_is_closed(
    tmp_path: Path, events: list[ev.Event], writer: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onward.supervisor.own_files.watch._SYSTEM", ())
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    work, scratch = tmp_path / "work", tmp_path / "scratch"
    for folder in (work, scratch, tmp_path / "tmp"):
        folder.mkdir()
    watch = watch_of(work, events, Timer(), writer.pid)
    tell(writer, str(scratch / "exp.pt"))
    watch.look()
    assert entries(events) == []
    tell(writer, str(tmp_path / "tmp" / "cache.pt"))
    watch.look()
    assert entries(events) == []  # not yet: a kill closes files too
    watch.look()
    assert entries(events) == [[str(scratch / "exp.pt")]]
    tell(writer, "")
    watch.look()
    assert len(events) == 1


def test_a_file_that_is_still_open_at_the_end_counts_only_if_its_format_says_that_it_is_whole(
    tmp_path: Path, events: list[ev.Event], writer: subprocess.Popen[str]
) -> None:
    watch = watch_of(tmp_path, events, Timer(), writer.pid)
    tell(writer, str(tmp_path / "losses"))  # a log under a name of its own
    watch.look()
    watch.last_look(cut=True)
    assert entries(events) == []
    watch = watch_of(tmp_path, events, Timer(), writer.pid)
    with zipfile.ZipFile(tmp_path / "checkpoint.pth.tar", "w") as archive:
        archive.writestr("data", "1")
    tell(writer, str(tmp_path / "checkpoint.pth.tar"))
    watch.look()
    watch.last_look(cut=True)
    assert entries(events) == [["checkpoint.pth.tar"]]


def test_a_file_that_only_a_kill_closed_does_not_count_whenever_the_next_look_comes(
    tmp_path: Path, events: list[ev.Event], writer: subprocess.Popen[str]
) -> None:
    shell = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # what started the training lives a little longer
    living = [shell.pid, writer.pid]
    watch = OwnFilesWatch(
        tmp_path,
        leg=3,
        limit=None,
        processes=lambda: living,
        ours=(),
        write=events.append,
        clock=ManualClock(time.time()),
        timer=Timer(),
    )
    tell(writer, str(tmp_path / "state"))
    watch.look()
    writer.kill()
    writer.wait()
    watch.look()
    shell.communicate()
    living.clear()
    watch.look()
    watch.last_look(cut=True)
    assert entries(events) == []


def test_a_folder_with_very_many_files_costs_no_more_than_the_bound_and_is_looked_at_more_rarely(
    tmp_path: Path, events: list[ev.Event]
) -> None:
    for number in range(300):
        (tmp_path / f"sample{number}.pt").touch()
    listing = list_state_files(tmp_path, most=100)
    assert len(listing.files) <= 100 and listing.operations <= 101
    timer = Timer()
    watch = watch_of(tmp_path, events, timer)
    (tmp_path / "sample7.pt").write_bytes(b"1")
    timer.now = 149.0  # half a second for each of 301 operations
    watch.look()
    assert events == []
    timer.now = 152.0
    watch.look()
    assert entries(events) == [["sample7.pt"]]


def test_a_file_that_was_open_shortly_before_the_training_left_by_itself_counts_in_any_format(
    tmp_path: Path, events: list[ev.Event], writer: subprocess.Popen[str]
) -> None:
    watch = watch_of(tmp_path, events, Timer(), writer.pid)
    tell(writer, str(tmp_path / "state.pkl"))
    watch.look()
    tell(writer, "")
    watch.last_look(cut=False)
    assert entries(events) == [["state.pkl"]]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("onward.supervisor.own_files.watch._SYSTEM", ())
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


def test_a_short_save_through_a_linked_folder_or_file_counts(tmp_path: Path, events: list[ev.Event], elsewhere: Path) -> None:
    work = tmp_path / "work"
    (elsewhere / "old.npy").write_bytes(b"1")
    (elsewhere / "deep").mkdir()
    (elsewhere / "one.pkl").write_bytes(b"1")
    (work / "out").symlink_to(elsewhere)
    (work / "last.pkl").symlink_to(elsewhere / "one.pkl")
    timer = Timer()
    watch = watch_of(work, events, timer)
    (work / "out" / "deep" / "state.npy").write_bytes(b"22")
    timer.now = 30.0
    watch.look()
    (work / "last.pkl").write_bytes(b"333")
    timer.now = 200.0
    watch.look()
    assert entries(events) == [[str(elsewhere / "deep" / "state.npy")], [str(elsewhere / "one.pkl")]]
    (work / "out" / "state.npy").write_bytes(b"4444")
    watch.last_look(cut=True)
    assert entries(events)[2:] == [[str(elsewhere / "state.npy")]]


def test_what_a_link_leads_to_in_the_folder_itself_or_the_runs_own_counts_once_or_not_at_all(
    tmp_path: Path, events: list[ev.Event], elsewhere: Path
) -> None:
    work = tmp_path / "work"
    for name in ("out", "of-onward"):
        (work / name).mkdir()
    (work / "latest").symlink_to(work / "out")
    (work / "theirs").symlink_to(work / "of-onward")
    watch = OwnFilesWatch(
        work,
        leg=3,
        limit=100.0,
        processes=lambda: (),
        ours=(work / "of-onward",),
        write=events.append,
        clock=ManualClock(time.time()),
        timer=Timer(),
    )
    (work / "latest" / "model.pt").write_bytes(b"1")
    watch.last_look(cut=True)
    assert entries(events) == [["out/model.pt"]]


def test_very_many_files_behind_links_cost_no_more_than_the_bound(tmp_path: Path, elsewhere: Path) -> None:
    work = tmp_path / "work"
    for number in range(30):
        folder = elsewhere / f"{number}"
        folder.mkdir()
        for file in range(20):
            (folder / f"{file}.npy").touch()
        (work / f"data{number}").symlink_to(folder)
    listing = LinkedFolders(work, list_state_files(work).links, foreign=()).list()
    assert 100 < len(listing.files) <= 200 and listing.operations <= 230


def test_a_link_to_storage_that_hangs_holds_nobody_up_and_is_looked_behind_again_when_it_answers(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "out").symlink_to(elsewhere)
    (elsewhere / "state.npy").write_bytes(b"1")
    answers = threading.Event()
    real = os.path.realpath

    def realpath(path: str) -> str:
        answers.wait()
        return real(path)

    monkeypatch.setattr("onward.supervisor.own_files.linked_folders.os.path.realpath", realpath)
    linked = LinkedFolders(work, ["out"], foreign=(), patience=0.05)
    try:
        assert linked.list().files == {} and linked.list().files == {}
        assert len([thread for thread in threading.enumerate() if thread.name == "links of the working folder"]) == 1
    finally:
        answers.set()
    until(lambda: list(linked.list().files) == [str(elsewhere / "state.npy")])


def test_links_that_were_made_since_are_not_followed_to_files_or_folders(tmp_path: Path, events: list[ev.Event]) -> None:
    elsewhere, work = tmp_path / "elsewhere", tmp_path / "work"
    elsewhere.mkdir()
    work.mkdir()
    watch = watch_of(work, events, Timer())
    (elsewhere / "model.pt").write_bytes(b"1")
    (work / "folder").symlink_to(elsewhere)
    (work / "last.pt").symlink_to(elsewhere / "model.pt")
    watch.last_look(cut=True)
    assert entries(events) == []
    assert not list_state_files(work / "gone").files
    (work / "model.pt").write_bytes(b"1")
    watch.last_look(cut=True)
    assert entries(events) == [["model.pt"]]


def test_a_file_from_before_the_leg_that_is_moved_into_the_folder_does_not_count(tmp_path: Path, events: list[ev.Event]) -> None:
    watch = watch_of(tmp_path, events, Timer())
    began = time.time()
    for name, age in (("old.pt", 86_400), ("by-a-slow-clock.pt", 5)):
        (tmp_path / name).write_bytes(b"1")
        os.utime(tmp_path / name, (began - age, began - age))
    watch.last_look(cut=True)
    assert entries(events) == [["by-a-slow-clock.pt"]]


def test_what_is_in_hidden_folders_and_among_logs_is_not_looked_at(tmp_path: Path) -> None:
    for name in (".cache", "__pycache__", "wandb", "logs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.bin").touch()
    assert list_state_files(tmp_path).files == {}
    assert os.listdir(tmp_path)
