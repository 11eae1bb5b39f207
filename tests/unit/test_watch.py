from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.checkpoints.watch import Candidate, Watcher
from onward.sdk import contract

LONG_AGO = 1_000_000.0
NOW = LONG_AGO + 1000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ckpt"
    made.mkdir()
    return made


@pytest.fixture
def watcher(folder: Path) -> Watcher:
    return Watcher(folder)


def put(folder: Path, *names: str, content: bytes = b"x", at: float = LONG_AGO) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (at, at))


def commit(folder: Path, step: int, *names: str, **note: object) -> None:
    """As run.checkpoint() does: a folder that appears by rename, with its mark."""
    partial = folder / f".partial-{step}"
    put(partial, *names, at=NOW)
    (partial / contract.COMMIT_FILE).write_text(json.dumps({"step": step, "seconds": 0.5, "metrics": {}, **note}))
    partial.rename(folder / contract.step_folder(step))


def seen(watcher: Watcher, *, now: float = NOW, closed: bool = False) -> dict[int | None, list[str]]:
    return {candidate.step: sorted(candidate.sources) for candidate in watcher.ready(now=now, closed=closed)}


def take(watcher: Watcher, *, closed: bool = False) -> list[Candidate]:
    ready = watcher.ready(now=NOW, closed=closed)
    for candidate in ready:
        watcher.done_with(candidate)
    return ready


# ── made by run.checkpoint() ──────────────────────────────────────────────────


def test_a_committed_checkpoint_is_complete_at_once(folder: Path, watcher: Watcher) -> None:
    commit(folder, 7, "w", "deep/v", metrics={"loss": 0.5})
    [candidate] = watcher.ready(now=NOW)
    assert (candidate.step, candidate.made_by, candidate.save_seconds, candidate.metrics) == (7, "sdk", 0.5, {"loss": 0.5})
    assert sorted(candidate.sources) == ["deep/v", "w"], "without the mark"
    assert candidate.folder == folder / "step-00000007"


def test_committed_checkpoints_come_oldest_first_and_once(folder: Path, watcher: Watcher) -> None:
    for step in (30, 4, 100):
        commit(folder, step, "w")
    assert [candidate.step for candidate in take(watcher)] == [4, 30, 100]
    assert seen(watcher) == {}


def test_a_folder_without_its_mark_or_with_a_torn_one_is_not_committed(folder: Path, watcher: Watcher) -> None:
    put(folder / ".partial-step-00000003-77", "w")
    commit(folder, 5, "w")
    (folder / "step-00000005" / contract.COMMIT_FILE).write_text('{"step"')
    assert seen(watcher) == {}


# ── written by the training itself ────────────────────────────────────────────


def test_files_are_complete_when_they_have_been_quiet(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", at=LONG_AGO)
    assert seen(watcher, now=LONG_AGO + 1.9) == {}
    assert seen(watcher, now=LONG_AGO + 2.1) == {100: ["model_100.pt"]}


def test_files_of_one_number_are_one_checkpoint_and_wait_for_each_other(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", "optim_100.pt", "model_200.pt")
    put(folder, "optim_200.pt", at=NOW - 1)
    assert seen(watcher) == {100: ["model_100.pt", "optim_100.pt"]}
    assert seen(watcher, now=NOW + 5)[200] == ["model_200.pt", "optim_200.pt"]


def test_entries_without_a_number_go_with_each(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", "model_200.pt", "config.json", "best.pt")
    assert seen(watcher) == {
        100: ["best.pt", "config.json", "model_100.pt"],
        200: ["best.pt", "config.json", "model_200.pt"],
    }


def test_an_unnumbered_file_that_is_being_written_holds_the_numbered_ones_back(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt")
    put(folder, "optimizer.pt", at=NOW - 1)
    assert seen(watcher) == {}


def test_an_unnumbered_file_written_again_makes_no_old_checkpoint_new(folder: Path, watcher: Watcher) -> None:
    """Else the weights of step 100 would be published once more, as the newest."""
    put(folder, "model_100.pt", "model_200.pt", "best.pt")
    take(watcher)
    put(folder, "best.pt", content=b"better", at=NOW - 100)
    assert seen(watcher) == {}
    put(folder, "model_300.pt")
    assert seen(watcher) == {300: ["best.pt", "model_300.pt"]}


def test_what_was_written_after_the_last_numbered_one_is_carried_with_it_in_the_end(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", "model_200.pt", "best.pt")
    take(watcher)
    put(folder, "best.pt", content=b"better", at=NOW - 100)
    [candidate] = take(watcher, closed=True)
    assert (candidate.step, sorted(candidate.sources)) == (200, ["best.pt", "model_200.pt"])
    assert take(watcher, closed=True) == []


def test_where_nothing_has_a_number_the_folder_is_one_checkpoint(folder: Path, watcher: Watcher) -> None:
    put(folder, "model.h5", "optimizer.bin", "sub/config.json")
    assert seen(watcher) == {None: ["model.h5", "optimizer.bin", "sub/config.json"]}
    take(watcher)
    assert seen(watcher) == {}
    put(folder, "model.h5", content=b"of the next epoch", at=NOW - 100)
    assert seen(watcher) == {None: ["model.h5", "optimizer.bin", "sub/config.json"]}


def test_a_number_written_again_is_seen_again(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt")
    take(watcher)
    put(folder, "model_100.pt", content=b"other", at=NOW - 50)
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_a_folder_with_a_number_is_one_checkpoint_with_all_that_is_in_it(folder: Path, watcher: Watcher) -> None:
    put(folder, "checkpoint-500/model.pt", "checkpoint-500/rng_state_0.pth", "checkpoint-500/deep/er/x", "checkpoint-1000/model.pt")
    assert seen(watcher) == {
        500: ["checkpoint-500/deep/er/x", "checkpoint-500/model.pt", "checkpoint-500/rng_state_0.pth"],
        1000: ["checkpoint-1000/model.pt"],
    }


def test_an_empty_folder_is_no_checkpoint(folder: Path, watcher: Watcher) -> None:
    (folder / "checkpoint-500").mkdir()
    assert seen(watcher, closed=True) == {}
    assert Watcher(folder / "nowhere").ready(now=NOW) == []


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("model_100.pt", 100),
        ("model-epoch=03-step=1200.ckpt", 1200),
        ("model-epoch=03-val_loss=0.25.ckpt", 3),
        ("weights.07-0.93.hdf5", 7),
        ("ckpt-100.index", 100),
        ("ckpt-100.data-00000-of-00001", 100),
        ("optim_000100_rank3.pt", 100),
        ("global_step100", 100),
        ("iter_0000500", 500),
        ("epoch12.tar.gz", 12),
        ("step-5", 5),
        ("model.h5", None),
        ("model.safetensors", None),
        ("model-00001-of-00004.safetensors", None),
        ("mp_rank_00.pt", None),
        ("best.pt", None),
        ("checkpoint", None),
    ],
)
def test_the_step_is_read_from_the_names_people_use(folder: Path, watcher: Watcher, name: str, step: int | None) -> None:
    put(folder, name)
    assert seen(watcher) == {step: [name]}


@pytest.mark.parametrize("name", [".model_100.pt", ".hidden", "tmp-checkpoint-500", "model_100.pt.tmp", "model.pt.part", "model.pt~"])
def test_hidden_and_unfinished_names_are_ignored(folder: Path, watcher: Watcher, name: str) -> None:
    put(folder, name)
    assert seen(watcher, closed=True) == {}


@pytest.mark.parametrize("name", ["events.out.tfevents.17.node1", "runs/a/events.out.tfevents.17.node1", "train.log", "slurm.out"])
def test_a_log_that_is_written_all_the_time_holds_nothing_back(folder: Path, watcher: Watcher, name: str) -> None:
    put(folder, "checkpoint-500/model.pt")
    put(folder, name, at=NOW)
    assert seen(watcher) == {500: ["checkpoint-500/model.pt"]}
    take(watcher)
    put(folder, name, content=b"more", at=NOW + 1)
    assert seen(watcher, closed=True) == {}


def test_links_to_files_are_followed_and_to_folders_beside_them_kept(folder: Path, watcher: Watcher) -> None:
    put(folder, "step_100/model.pt", "epoch_100.ckpt")
    for name, target in (("last.ckpt", "epoch_100.ckpt"), ("latest", "step_100"), ("dangling", "step_50"), ("away", "/")):
        (folder / name).symlink_to(target)
        os.utime(folder / name, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    assert seen(watcher) == {100: ["epoch_100.ckpt", "last.ckpt", "latest", "step_100/model.pt"]}


# ── open files ────────────────────────────────────────────────────────────────

HOLDER = "import sys; file = open(sys.argv[1], sys.argv[2]); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def holders() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.communicate("")


def hold_open(path: Path, mode: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "open\n"
    return process


@pytest.mark.parametrize("mode", ["ab", "r+b"])
def test_a_file_still_open_for_writing_is_not_taken(
    folder: Path, watcher: Watcher, mode: str, holders: list[subprocess.Popen[str]]
) -> None:
    put(folder, "model_100.pt", "model_200.pt")
    holder = hold_open(folder / "model_200.pt", mode)
    holders.append(holder)
    assert seen(watcher) == {100: ["model_100.pt"]}
    holder.communicate("")
    assert seen(watcher) == {100: ["model_100.pt"], 200: ["model_200.pt"]}


def test_a_file_open_for_reading_is_taken(folder: Path, watcher: Watcher, holders: list[subprocess.Popen[str]]) -> None:
    put(folder, "model_100.pt")
    holders.append(hold_open(folder / "model_100.pt", "rb"))
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_once_the_training_has_gone_nothing_is_waited_for(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", at=NOW)
    assert seen(watcher) == {}
    assert seen(watcher, closed=True) == {100: ["model_100.pt"]}


# ── resumed ───────────────────────────────────────────────────────────────────


def test_what_came_from_a_checkpoint_is_not_published_again(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", "best.pt", "config.json")
    watcher.ignore_present()
    assert seen(watcher) == seen(watcher, closed=True) == {}
    put(folder, "config.json", content=b"written at every start", at=NOW - 10)
    assert seen(watcher) == {}
    put(folder, "model_200.pt")
    assert seen(watcher) == {200: ["best.pt", "config.json", "model_200.pt"]}


def test_unnumbered_files_that_came_from_a_checkpoint_are_new_once_they_change(folder: Path, watcher: Watcher) -> None:
    put(folder, "model.pt", "optim.pt")
    watcher.ignore_present()
    assert seen(watcher, closed=True) == {}
    put(folder, "model.pt", content=b"trained", at=NOW - 10)
    assert seen(watcher) == {None: ["model.pt", "optim.pt"]}


def test_what_the_training_wrote_before_anybody_looked_is_new(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", "best.pt", at=LONG_AGO)
    put(folder, "model_200.pt", at=LONG_AGO + 10)
    watcher.ignore_present(before=LONG_AGO + 5)
    assert seen(watcher) == {200: ["best.pt", "model_200.pt"]}


def test_a_companion_that_the_training_wrote_before_anybody_looked_is_carried_in_the_end(folder: Path, watcher: Watcher) -> None:
    put(folder, "model_100.pt", at=LONG_AGO)
    put(folder, "best.pt", at=LONG_AGO + 10)
    watcher.ignore_present(before=LONG_AGO + 5)
    assert seen(watcher) == {}
    assert seen(watcher, closed=True) == {100: ["best.pt", "model_100.pt"]}


def test_committed_checkpoints_are_never_ignored(folder: Path, watcher: Watcher) -> None:
    commit(folder, 7, "w")
    watcher.ignore_present()
    assert seen(watcher) == {7: ["w"]}
