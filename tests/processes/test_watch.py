from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.checkpoints.watching import folder_look, listing
from onward.checkpoints.watching.watcher import Candidate, SaveWatcher
from onward.sdk import contract

LONG_AGO = 1_000_000.0
NOW = LONG_AGO + 1000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ckpt"
    made.mkdir()
    return made


@pytest.fixture
def watcher(folder: Path) -> SaveWatcher:
    return SaveWatcher(folder)


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


def seen(watcher: SaveWatcher, *, now: float = NOW, closed: bool = False) -> dict[int | None, list[str]]:
    return {candidate.step: sorted(candidate.sources) for candidate in watcher.ready(now=now, closed=closed)}


def take(watcher: SaveWatcher, *, closed: bool = False) -> list[Candidate]:
    ready = watcher.ready(now=NOW, closed=closed)
    for candidate in ready:
        watcher.done_with(candidate)
    return ready


# ── made by run.checkpoint() ──────────────────────────────────────────────────


def test_a_committed_checkpoint_is_complete_at_once(folder: Path, watcher: SaveWatcher) -> None:
    commit(folder, 7, "w", "deep/v", metrics={"loss": 0.5})
    [candidate] = watcher.ready(now=NOW)
    assert (candidate.step, candidate.made_by, candidate.save_seconds, candidate.metrics) == (7, "sdk", 0.5, {"loss": 0.5})
    assert sorted(candidate.sources) == ["deep/v", "w"], "without the mark"
    assert candidate.folder == folder / "step-00000007"


def test_committed_checkpoints_come_oldest_first_and_once(folder: Path, watcher: SaveWatcher) -> None:
    for step in (30, 4, 100):
        commit(folder, step, "w")
    assert [candidate.step for candidate in take(watcher)] == [4, 30, 100]
    assert seen(watcher) == {}


def test_a_folder_without_its_mark_or_with_a_torn_one_is_not_committed(folder: Path, watcher: SaveWatcher) -> None:
    put(folder / ".partial-step-00000003-77", "w")
    commit(folder, 5, "w")
    (folder / "step-00000005" / contract.COMMIT_FILE).write_text('{"step"')
    assert seen(watcher) == {}


# ── written by the training itself ────────────────────────────────────────────


def test_the_first_save_is_complete_after_a_long_quiet_and_later_ones_after_a_short_one(folder: Path, watcher: SaveWatcher) -> None:
    """Of the first nobody knows which files are still to come."""
    put(folder, "model_100.pt", at=LONG_AGO)
    assert seen(watcher, now=LONG_AGO + 29.9) == {}
    assert seen(watcher, now=LONG_AGO + 30.1) == {100: ["model_100.pt"]}
    take(watcher)
    put(folder, "model_200.pt", at=NOW)
    assert seen(watcher, now=NOW + 1.9) == {}
    assert seen(watcher, now=NOW + 2.1) == {200: ["model_200.pt"]}


def test_the_first_save_is_complete_once_the_next_one_begins(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", at=NOW - 10)
    assert seen(watcher) == {}
    put(folder, "model_200.pt", at=NOW - 1)
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_files_of_one_number_are_one_checkpoint_and_wait_for_each_other(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "optim_100.pt", "model_200.pt")
    put(folder, "optim_200.pt", at=NOW - 1)
    assert seen(watcher) == {100: ["model_100.pt", "optim_100.pt"]}
    take(watcher)
    assert seen(watcher, now=NOW + 5)[200] == ["model_200.pt", "optim_200.pt"]


def test_a_save_that_lacks_a_file_of_the_one_before_waits_for_it(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "optim_100.pt")
    take(watcher)
    put(folder, "model_200.pt", at=NOW - 500)
    assert seen(watcher) == {}
    put(folder, "optim_200.pt", at=NOW - 10)
    assert seen(watcher) == {200: ["model_200.pt", "optim_200.pt"]}


@pytest.mark.parametrize("later", ["another save", "a long time"])
def test_a_save_that_lacks_a_file_waits_no_longer_than_until_the_next_one_or_ten_minutes(
    folder: Path, watcher: SaveWatcher, later: str
) -> None:
    put(folder, "model_100.pt", "optim_100.pt")
    take(watcher)
    put(folder, "model_200.pt", at=NOW - 500)
    assert seen(watcher) == {}
    if later == "another save":
        put(folder, "model_300.pt", at=NOW - 10)
        assert seen(watcher) == {200: ["model_200.pt"]}
    else:
        assert seen(watcher, now=NOW + 101) == {200: ["model_200.pt"]}


def test_what_lacks_a_file_when_the_training_has_gone_is_no_checkpoint_and_said_so(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "epoch_100/model.pt", "epoch_100/optim.pt")
    take(watcher)
    put(folder, "epoch_200/model.pt")
    assert seen(watcher, closed=True) == {}
    assert watcher.incomplete == [(200, "epoch_200/optim.pt, which earlier checkpoints have, had not been written")]


def test_a_lighter_save_that_was_seen_before_is_taken_in_the_end(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "optim_100.pt", "model_200.pt", at=LONG_AGO)
    put(folder, "model_300.pt", "optim_300.pt", at=LONG_AGO + 10)
    take(watcher)
    put(folder, "model_400.pt", at=NOW - 10)
    assert seen(watcher) == {}
    assert seen(watcher, closed=True) == {400: ["model_400.pt"]}


def test_other_epochs_losses_and_shards_in_the_names_are_the_same_files(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "w-epoch=03-loss=0.25-step=100.pt", "optim_000100_rank0.pt", "optim_000100_rank1.pt")
    take(watcher)
    put(folder, "w-epoch=04-loss=0.125-step=200.pt", "optim_000200_rank0.pt", at=NOW - 100)
    assert seen(watcher) == {}, "rank 1 is missing"
    put(folder, "optim_000200_rank1.pt", at=NOW - 10)
    assert list(seen(watcher)) == [200]


def test_a_late_file_makes_a_later_version_and_the_next_save_is_waited_for_longer(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "checkpoint-500/model.pt", at=NOW - 50)
    take(watcher)
    put(folder, "checkpoint-500/optim.pt", at=NOW - 20)
    [candidate] = take(watcher)
    assert (candidate.step, candidate.again, candidate.rewritten) == (500, True, False)
    assert sorted(candidate.sources) == ["checkpoint-500/model.pt", "checkpoint-500/optim.pt"]
    put(folder, "checkpoint-600/model.pt", "checkpoint-600/optim.pt", at=NOW)
    assert seen(watcher, now=NOW + 44) == {}, "a file came 30 seconds later once"
    assert list(seen(watcher, now=NOW + 46)) == [600]


def test_entries_without_a_number_go_with_each(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "model_200.pt", "config.json", "best.pt")
    assert seen(watcher) == {
        100: ["best.pt", "config.json", "model_100.pt"],
        200: ["best.pt", "config.json", "model_200.pt"],
    }


def test_an_unnumbered_file_that_is_being_written_is_waited_for_a_while(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt")
    put(folder, "optimizer.pt", at=NOW - 1)
    assert seen(watcher) == {}
    assert seen(watcher, now=NOW + 2) == {100: ["model_100.pt", "optimizer.pt"]}


def test_an_unnumbered_file_that_never_rests_is_waited_for_once_and_left_out(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt")
    for second in range(0, 31, 2):
        put(folder, "progress.db", content=b"x" * second, at=NOW + second)
        ready = watcher.ready(now=NOW + second)
        assert len(ready) == (second == 30)
    assert sorted(ready[0].sources) == ["model_100.pt"]
    watcher.done_with(ready[0])
    put(folder, "model_200.pt", at=NOW + 40)
    put(folder, "progress.db", at=NOW + 43)
    assert seen(watcher, now=NOW + 43) == {200: ["model_200.pt"]}


def test_an_unnumbered_file_that_each_save_writes_anew_is_waited_for(folder: Path, watcher: SaveWatcher) -> None:
    """Else the weights of step 400 would go with the optimizer of step 300."""
    for index, step in enumerate((100, 200, 300), start=1):
        put(folder, f"model_{step}.pt", "optimizer.pt", content=b"x" * step, at=LONG_AGO + index * 100)
        assert sorted(candidate.step or 0 for candidate in take(watcher)) == [step]
    put(folder, "model_400.pt", at=NOW - 10)
    assert seen(watcher) == {}
    put(folder, "optimizer.pt", content=b"of 400", at=NOW - 5)
    assert seen(watcher) == {400: ["model_400.pt", "optimizer.pt"]}


@pytest.mark.parametrize("name", ["metrics.jsonl", "history.csv", "train_log.txt"])
def test_a_record_that_grows_all_the_time_holds_nothing_back(folder: Path, watcher: SaveWatcher, name: str) -> None:
    for step in (100, 200):
        put(folder, f"model_{step}.pt", at=NOW + step)
        for second in range(40):
            put(folder, name, content=b"x" * (step + second), at=NOW + step + second)
            found = watcher.ready(now=NOW + step + second)
            if found:
                break
        assert [sorted(candidate.sources) for candidate in found] == [[f"model_{step}.pt"]]
        watcher.done_with(found[0])
    assert seen(watcher, now=NOW + 1000, closed=True) == {}, "and 500 GB are not carried again for it"


def test_a_record_that_grows_beside_files_without_a_number_holds_nothing_back(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model.pt", "optim.pt", at=LONG_AGO)
    put(folder, "metrics.jsonl", at=NOW)
    assert seen(watcher) == {None: ["model.pt", "optim.pt"]}
    assert seen(watcher, now=NOW + 3) == {None: ["metrics.jsonl", "model.pt", "optim.pt"]}


def test_an_unnumbered_file_written_again_makes_no_old_checkpoint_new(folder: Path, watcher: SaveWatcher) -> None:
    """Else the weights of step 100 would be published once more, as the newest."""
    put(folder, "model_100.pt", "model_200.pt", "best.pt")
    take(watcher)
    put(folder, "best.pt", content=b"better", at=NOW - 100)
    assert seen(watcher) == {}
    put(folder, "model_300.pt")
    assert seen(watcher) == {300: ["best.pt", "model_300.pt"]}


def test_what_was_written_after_the_last_numbered_one_is_carried_with_it_in_the_end(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "model_200.pt", "best.pt")
    take(watcher)
    put(folder, "best.pt", content=b"better", at=NOW - 100)
    [candidate] = take(watcher, closed=True)
    assert (candidate.step, sorted(candidate.sources)) == (200, ["best.pt", "model_200.pt"])
    assert take(watcher, closed=True) == []


def test_where_nothing_has_a_number_the_folder_is_one_checkpoint(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model.h5", "optimizer.bin", "sub/config.json")
    assert seen(watcher) == {None: ["model.h5", "optimizer.bin", "sub/config.json"]}
    take(watcher)
    assert seen(watcher) == {}
    put(folder, "model.h5", content=b"of the next epoch", at=NOW - 100)
    assert seen(watcher) == {}, "the optimizer is of the epoch before"
    put(folder, "optimizer.bin", content=b"of the next epoch", at=NOW - 40)
    assert seen(watcher) == {None: ["model.h5", "optimizer.bin", "sub/config.json"]}


def test_the_best_so_far_is_not_waited_for_and_is_carried_when_it_comes(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "last.pt", "best.pt")
    take(watcher)
    put(folder, "last.pt", content=b"of the next epoch", at=NOW - 3)
    assert seen(watcher) == {None: ["best.pt", "last.pt"]}
    take(watcher)
    put(folder, "best.pt", content=b"after a long evaluation", at=NOW + 300)
    [candidate] = watcher.ready(now=NOW + 303)
    assert candidate.again, "a later version of the same"
    watcher.done_with(candidate)
    put(folder, "last.pt", content=b"and the next", at=NOW + 400)
    assert list(seen(watcher, now=NOW + 403)) == [None], "and holds no later one up"


def test_saves_that_follow_each_other_quickly_are_taken_in_the_pauses(folder: Path, watcher: SaveWatcher) -> None:
    """The first is over when the second begins, and the second when all is written again."""
    for index in range(3):
        put(folder, "state.pt", content=b"x" * (index + 1), at=NOW + 10 * index)
        found = [seen(watcher, now=NOW + 10 * index + second) for second in range(10)]
        assert any(found) is (index > 0)
        for candidate in watcher.ready(now=NOW + 10 * index + 9):
            watcher.done_with(candidate)


def test_a_number_written_again_is_seen_again(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt")
    take(watcher)
    put(folder, "model_100.pt", content=b"other", at=NOW - 50)
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_a_folder_with_a_number_is_one_checkpoint_with_all_that_is_in_it(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "checkpoint-500/model.pt", "checkpoint-500/rng_state_0.pth", "checkpoint-500/deep/er/x", "checkpoint-1000/model.pt")
    assert seen(watcher) == {
        500: ["checkpoint-500/deep/er/x", "checkpoint-500/model.pt", "checkpoint-500/rng_state_0.pth"],
        1000: ["checkpoint-1000/model.pt"],
    }


def test_an_empty_folder_is_no_checkpoint(folder: Path, watcher: SaveWatcher) -> None:
    (folder / "checkpoint-500").mkdir()
    assert seen(watcher, closed=True) == {}
    assert SaveWatcher(folder / "nowhere").ready(now=NOW) == []


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
def test_the_step_is_read_from_the_names_people_use(folder: Path, watcher: SaveWatcher, name: str, step: int | None) -> None:
    put(folder, name)
    assert seen(watcher) == {step: [name]}


@pytest.mark.parametrize("name", [".model_100.pt", ".hidden", "tmp-checkpoint-500", "model_100.pt.tmp", "model.pt.part", "model.pt~"])
def test_hidden_and_unfinished_names_are_ignored(folder: Path, watcher: SaveWatcher, name: str) -> None:
    put(folder, name)
    assert seen(watcher, closed=True) == {}


@pytest.mark.parametrize("name", ["events.out.tfevents.17.node1", "runs/a/events.out.tfevents.17.node1", "train.log", "slurm.out"])
def test_a_log_that_is_written_all_the_time_holds_nothing_back(folder: Path, watcher: SaveWatcher, name: str) -> None:
    put(folder, "checkpoint-500/model.pt")
    put(folder, name, at=NOW)
    assert seen(watcher) == {500: ["checkpoint-500/model.pt"]}
    take(watcher)
    put(folder, name, content=b"more", at=NOW + 1)
    assert seen(watcher, closed=True) == {}


def test_links_to_files_are_followed_and_to_folders_beside_them_kept(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "step_100/model.pt", "epoch_100.ckpt")
    for name, target in (("last.ckpt", "epoch_100.ckpt"), ("latest", "step_100"), ("dangling", "step_50"), ("away", "/")):
        (folder / name).symlink_to(target)
        os.utime(folder / name, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    assert seen(watcher) == {100: ["epoch_100.ckpt", "last.ckpt", "latest", "step_100/model.pt"]}


def test_a_checkpoint_that_the_training_is_removing_is_not_taken_for_a_new_version(folder: Path, watcher: SaveWatcher) -> None:
    """Else the half that is left would replace the whole."""
    put(folder, *(f"checkpoint-{step}/{name}" for step in (100, 200) for name in ("a", "b", "c")))
    take(watcher)
    (folder / "checkpoint-100" / "a").unlink()
    assert seen(watcher, now=NOW + 100) == seen(watcher, now=NOW + 200, closed=True) == {}


def test_a_checkpoint_that_is_removed_before_it_was_taken_is_not_taken_by_half(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "checkpoint-100/a", "checkpoint-100/b", "checkpoint-200/a", "checkpoint-200/b", at=NOW)
    assert seen(watcher, now=NOW + 1) == {}
    (folder / "checkpoint-100" / "a").unlink()
    assert list(seen(watcher, now=NOW + 100)) == [200]


def test_a_file_that_is_renamed_into_its_place_inside_a_folder_is_waited_for(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "step-100/a.pt", "step-100/b.pt.tmp")
    assert seen(watcher, now=LONG_AGO + 500) == {}
    (folder / "step-100" / "b.pt.tmp").rename(folder / "step-100" / "b.pt")
    assert seen(watcher, now=LONG_AGO + 500) == {100: ["step-100/a.pt", "step-100/b.pt"]}


def test_what_lies_beside_numbered_ones_is_no_checkpoint_while_none_of_them_is_there(folder: Path, watcher: SaveWatcher) -> None:
    """A training that keeps only one removes the old one before it writes the new."""
    put(folder, "model_100.pt", "config.json", "best.pt")
    take(watcher)
    (folder / "model_100.pt").unlink()
    assert seen(watcher) == seen(watcher, closed=True) == {}


def test_settings_written_at_the_start_are_no_checkpoint_until_they_are_written_again(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "state.json")
    assert seen(watcher) == {}
    put(folder, "state.json", content=b"of the next epoch", at=NOW - 10)
    assert seen(watcher) == {None: ["state.json"]}


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
    folder: Path, watcher: SaveWatcher, mode: str, holders: list[subprocess.Popen[str]]
) -> None:
    put(folder, "model_100.pt", "model_200.pt")
    holder = hold_open(folder / "model_200.pt", mode)
    holders.append(holder)
    assert seen(watcher) == {100: ["model_100.pt"]}
    holder.communicate("")
    assert seen(watcher) == {100: ["model_100.pt"], 200: ["model_200.pt"]}


def test_a_record_that_is_open_holds_nothing_back(folder: Path, watcher: SaveWatcher, holders: list[subprocess.Popen[str]]) -> None:
    put(folder, "model_100.pt", "history.csv")
    holders.append(hold_open(folder / "history.csv", "ab"))
    os.utime(folder / "history.csv", (LONG_AGO, LONG_AGO))
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_a_file_open_through_a_link_is_not_taken(
    folder: Path, watcher: SaveWatcher, tmp_path: Path, holders: list[subprocess.Popen[str]]
) -> None:
    put(tmp_path, "elsewhere.pt")
    (folder / "model_100.pt").symlink_to(tmp_path / "elsewhere.pt")
    holder = hold_open(tmp_path / "elsewhere.pt", "r+b")
    holders.append(holder)
    assert seen(watcher) == {}
    holder.communicate("")
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_open_files_are_asked_for_once_a_look_and_not_while_files_are_being_written(
    folder: Path, watcher: SaveWatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def scan(folder: Path, **_: object) -> frozenset[str]:
        asked.append(folder)
        return frozenset()

    monkeypatch.setattr(folder_look, "open_for_writing", scan)
    put(folder, "model_100.pt", "model_200.pt", "model_300.pt", at=NOW)
    assert (seen(watcher), len(asked)) == ({}, 0)
    assert (list(seen(watcher, now=NOW + 50)), len(asked)) == ([100, 200, 300], 1)


def test_a_file_open_for_reading_is_taken(folder: Path, watcher: SaveWatcher, holders: list[subprocess.Popen[str]]) -> None:
    put(folder, "model_100.pt")
    holders.append(hold_open(folder / "model_100.pt", "rb"))
    assert seen(watcher) == {100: ["model_100.pt"]}


def test_once_the_training_has_gone_nothing_is_waited_for(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", at=NOW)
    assert seen(watcher) == {}
    assert seen(watcher, closed=True) == {100: ["model_100.pt"]}


# ── resumed ───────────────────────────────────────────────────────────────────


def test_what_came_from_a_checkpoint_is_not_published_again(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "best.pt", "config.json")
    watcher.ignore_present()
    assert seen(watcher) == seen(watcher, closed=True) == {}
    put(folder, "config.json", content=b"written at every start", at=NOW - 10)
    assert seen(watcher) == {}
    put(folder, "model_200.pt")
    assert seen(watcher) == {200: ["best.pt", "config.json", "model_200.pt"]}


def test_unnumbered_files_that_came_from_a_checkpoint_are_new_once_they_change(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model.pt", "optim.pt")
    watcher.ignore_present()
    assert seen(watcher, closed=True) == {}
    put(folder, "model.pt", content=b"trained", at=NOW - 20)
    assert seen(watcher) == {}, "of the optimizer only that of the checkpoint is there"
    put(folder, "optim.pt", content=b"trained", at=NOW - 10)
    assert seen(watcher) == {None: ["model.pt", "optim.pt"]}


def test_what_the_training_wrote_before_anybody_looked_is_new(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", "best.pt", at=LONG_AGO)
    put(folder, "model_200.pt", at=LONG_AGO + 10)
    watcher.ignore_present(before=LONG_AGO + 5)
    assert seen(watcher) == {200: ["best.pt", "model_200.pt"]}


def test_a_companion_that_the_training_wrote_before_anybody_looked_is_carried_in_the_end(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_100.pt", at=LONG_AGO)
    put(folder, "best.pt", at=LONG_AGO + 10)
    watcher.ignore_present(before=LONG_AGO + 5)
    assert seen(watcher) == {}
    assert seen(watcher, closed=True) == {100: ["best.pt", "model_100.pt"]}


def test_committed_checkpoints_are_never_ignored(folder: Path, watcher: SaveWatcher) -> None:
    commit(folder, 7, "w")
    watcher.ignore_present()
    assert seen(watcher) == {7: ["w"]}


# ── very many files ───────────────────────────────────────────────────────────


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose size and time were asked for."""
    asked: list[str] = []
    real = listing._one

    def one(entry: os.DirEntry[str], name: str, links: dict[str, str]) -> listing.FileVersion | None:
        asked.append(name)
        return real(entry, name, links)

    monkeypatch.setattr(listing, "_one", one)
    return asked


def test_old_checkpoints_that_were_dealt_with_are_looked_into_once_a_minute(
    folder: Path, watcher: SaveWatcher, looked_at: list[str]
) -> None:
    put(folder, *(f"model_{step}.pt" for step in range(2000)))
    assert len(take(watcher)) == 2000 and len(looked_at) == 2000, "each once"
    watcher.ready(now=NOW + 1)
    looked_at.clear()
    for second in range(2, 50):
        assert watcher.ready(now=NOW + second) == []
    assert set(looked_at) == {"model_1999.pt"}, "only the newest may still grow"
    looked_at.clear()
    put(folder, "model_2000.pt", "optim_7.pt", at=NOW + 50)
    assert list(seen(watcher, now=NOW + 53)) == [7, 2000]
    assert sorted(looked_at) == ["model_1999.pt", "model_2000.pt", "model_7.pt", "optim_7.pt"], "and what has new entries"
    looked_at.clear()
    watcher.ready(now=NOW + 61)
    assert len(looked_at) == 2002


def test_all_is_looked_into_when_the_training_has_gone(folder: Path, watcher: SaveWatcher) -> None:
    put(folder, "model_1.pt", "model_2.pt")
    take(watcher)
    watcher.ready(now=NOW + 1)
    put(folder, "model_1.pt", content=b"written again", at=NOW)
    assert list(seen(watcher, now=NOW + 2, closed=True)) == [1]


def test_looking_takes_a_twentieth_of_the_time(folder: Path) -> None:
    ticks = iter([10.0, 12.0, 20.0, 20.001])
    watcher = SaveWatcher(folder, timer=lambda: next(ticks))
    watcher.ready(now=NOW)
    assert watcher.rest == pytest.approx(38.0)
    watcher.ready(now=NOW)
    assert watcher.rest == pytest.approx(0.019)
