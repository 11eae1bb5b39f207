"""Files that a training keeps in its working folder: published as checkpoints, and put back."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from onward.checkpoints.manifest import OWN, read_manifest
from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.restoring.working_folder import put_back
from onward.checkpoints.watching.candidate import Candidate
from onward.checkpoints.watching.linked_paths import LinkedWatcher, own_paths
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import CheckpointName

LONG_AGO = 1_700_000_000.0


def save(path: Path, text: str, *, at: float = LONG_AGO) -> None:
    """As torch.save does: a zip archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", text)
    os.utime(path, (at, at))


def read(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read("data").decode()


def tear(path: Path, *, at: float = LONG_AGO + 500) -> None:
    os.truncate(path, path.stat().st_size // 2)
    os.utime(path, (at, at))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def watcher(work: Path, *patterns: str, published: Path | None = None) -> LinkedWatcher:
    links = work.parent / "links"
    return LinkedWatcher(links, work, patterns, published=read_manifest(published) if published else None)


def published(work: Path, store: Path, *patterns: str, leg: int = 1, step: int = 5) -> Path:
    """As the publisher does it once the training has gone."""
    watch = watcher(work, *patterns)
    [candidate] = watch.ready(now=LONG_AGO + 100, closed=True)
    assert candidate.made_by == OWN
    name = CheckpointName(leg, step)
    publish(candidate.sources, store, name, created=LONG_AGO + 100, made_by=OWN, unchanged=lambda: watch.unchanged(candidate))
    return store / str(name)


# ── which files ───────────────────────────────────────────────────────────────


def test_a_path_names_a_file_a_pattern_several_and_a_folder_all_in_it(work: Path) -> None:
    for name in ("checkpoint.pt", "a_1.pt", "a_2.pt", "logs/v0/last.ckpt", "logs/v0/hparams.yaml", "train.py", "logs/v0/half.ckpt.tmp"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).touch()
    assert own_paths(work, ["checkpoint.pt", "none.pt"]) == ["checkpoint.pt"]
    assert own_paths(work, ["a_*.pt"]) == ["a_1.pt", "a_2.pt"]
    assert own_paths(work, ["logs"]) == own_paths(work, ["logs/**"]) == ["logs/v0/hparams.yaml", "logs/v0/last.ckpt"]


def test_a_link_stays_in_the_working_folder_or_in_a_folder_that_a_pattern_spells_out(work: Path) -> None:
    elsewhere = work.parent / "elsewhere"
    save(elsewhere / "model.pt", "elsewhere")
    save(work / "epoch_1.pt", "epoch 1")
    (work / "last.pt").symlink_to("epoch_1.pt")
    (work / "theirs.pt").symlink_to(elsewhere / "model.pt")
    (work / "out").symlink_to(elsewhere)
    assert own_paths(work, ["*.pt"]) == own_paths(work, ["**/*.pt"]) == ["epoch_1.pt", "last.pt"]
    assert own_paths(work, ["*/*.pt"]) == own_paths(work, ["theirs.pt"]) == []
    assert own_paths(work, ["out"]) == own_paths(work, ["out/*.pt"]) == own_paths(work, ["out/model.pt"]) == ["out/model.pt"]


def test_a_link_that_leads_out_is_told_once(work: Path) -> None:
    save(work.parent / "mine.pt", "elsewhere")
    (work / "a.pt").symlink_to(work.parent / "mine.pt")
    said: list[str] = []
    watch = LinkedWatcher(work.parent / "links", work, ["*.pt"], warn=said.append)
    watch.ignore_present(before=LONG_AGO - 50)
    assert not watch.ready(now=LONG_AGO + 100, closed=True)
    [words] = said
    assert words.startswith("not published: a.pt, since a link leads out of the working folder to it; if the training saves there,")


def test_a_new_link_to_an_old_file_is_no_save_and_one_to_a_new_file_goes_with_it(work: Path) -> None:
    save(work / "kept" / "old.pt", "of an older try", at=LONG_AGO - 172_800)
    watch = watcher(work, "*.pt")
    watch.ignore_present(before=LONG_AGO - 50)
    (work / "best.pt").symlink_to("kept/old.pt")
    assert not watch.ready(now=LONG_AGO + 100, closed=True)
    save(work / "kept" / "new.pt", "epoch 1")
    (work / "last.pt").symlink_to("kept/new.pt")
    [candidate] = watch.ready(now=LONG_AGO + 100, closed=True)
    assert list(candidate.sources) == ["last.pt"]


# ── publishing ────────────────────────────────────────────────────────────────


def test_what_the_paths_name_is_published_from_where_it_lies(work: Path, store: Path) -> None:
    save(work / "checkpoint.pth.tar", "epoch 1")
    save(work / "out" / "optim.pt", "of epoch 1")
    (work / "train.py").touch()
    folder = published(work, store, "checkpoint.pth.tar", "out/**")
    manifest = read_manifest(folder)
    assert sorted(manifest.files) == ["checkpoint.pth.tar", "out/optim.pt"]
    assert manifest.files["checkpoint.pth.tar"].written == LONG_AGO * 1e9
    assert read(folder / "out" / "optim.pt") == "of epoch 1" and not (folder / "out" / "optim.pt").is_symlink()
    assert read(work / "checkpoint.pth.tar") == "epoch 1"


def test_a_file_is_complete_once_it_has_been_quiet_and_not_while_it_is_cut_off(work: Path) -> None:
    save(work / "checkpoint.pth.tar", "epoch 1")
    watch = watcher(work, "checkpoint.pth.tar")
    assert not watch.ready(now=LONG_AGO + 1)
    assert len(watch.ready(now=LONG_AGO + 60)) == 1
    tear(work / "checkpoint.pth.tar")
    assert not watch.ready(now=LONG_AGO + 1000)


def test_what_was_published_before_is_not_new_whatever_the_clocks_say(work: Path, store: Path) -> None:
    save(work / "checkpoint.pth.tar", "epoch 1")
    folder = published(work, store, "checkpoint.pth.tar")
    watch = watcher(work, "checkpoint.pth.tar", published=folder)
    watch.ignore_present(before=0.0)
    assert not watch.ready(now=LONG_AGO + 1000, closed=True)
    save(work / "checkpoint.pth.tar", "epoch 2", at=LONG_AGO + 200)
    assert len(watch.ready(now=LONG_AGO + 1000, closed=True)) == 1


def test_files_that_were_there_before_the_run_are_not_its_own(work: Path) -> None:
    save(work / "checkpoint.pth.tar", "of an older try")
    watch = watcher(work, "checkpoint.pth.tar")
    watch.ignore_present(before=LONG_AGO + 50)
    assert not watch.ready(now=LONG_AGO + 1000, closed=True)


def test_an_old_file_that_is_never_written_is_left_out_and_holds_no_save_back(work: Path) -> None:
    save(work / "pretrained.pt", "two days old", at=LONG_AGO - 172_800)
    watch = watcher(work, "*.pt")
    watch.ignore_present(before=LONG_AGO - 50)
    save(work / "checkpoint.pt", "epoch 1")
    [candidate] = watch.ready(now=LONG_AGO + 5, closed=True)
    assert list(candidate.sources) == ["checkpoint.pt"]
    assert watch.incomplete == []


def test_old_files_with_numbers_hold_no_save_back_either(work: Path) -> None:
    for name in ("model_90.pt", "optim_90.pt"):
        save(work / name, "of an older try", at=LONG_AGO - 172_800)
    watch = watcher(work, "*.pt")
    watch.ignore_present(before=LONG_AGO - 50)
    save(work / "model_5.pt", "epoch 5")
    [candidate] = watch.ready(now=LONG_AGO + 5, closed=True)
    assert (candidate.step, list(candidate.sources)) == (5, ["model_5.pt"])


def test_an_old_file_belongs_to_the_checkpoint_once_it_is_written(work: Path) -> None:
    save(work / "model.pt", "of an older try", at=LONG_AGO - 172_800)
    watch = watcher(work, "*.pt")
    watch.ignore_present(before=LONG_AGO - 50)
    save(work / "model.pt", "epoch 1")
    save(work / "optim.pt", "epoch 1")
    [candidate] = watch.ready(now=LONG_AGO + 5, closed=True)
    assert sorted(candidate.sources) == ["model.pt", "optim.pt"]


def test_a_file_that_only_an_earlier_leg_wrote_goes_with_the_save_of_a_training_that_ended_by_itself(work: Path, store: Path) -> None:
    save(work / "initial.pt", "written once")
    save(work / "model.pt", "epoch 1")
    watch = watcher(work, "*.pt", published=published(work, store, "*.pt"))
    watch.ignore_present(before=LONG_AGO - 50)
    save(work / "model.pt", "epoch 2", at=LONG_AGO + 900)
    assert not watch.ready(now=LONG_AGO + 905, closed=True, killed=True)
    assert watch.incomplete == [(None, "initial.pt had not been written again, as earlier saves did")]
    [candidate] = watch.ready(now=LONG_AGO + 905, closed=True)
    assert sorted(candidate.sources) == ["initial.pt", "model.pt"]


def test_a_file_that_becomes_a_folder_is_followed(work: Path) -> None:
    save(work / "last", "a file")
    watch = watcher(work, "last")
    assert len(watch.ready(now=LONG_AGO + 60, closed=True)) == 1
    (work / "last").unlink()
    save(work / "last" / "model.pt", "in a folder")
    [candidate] = watch.ready(now=LONG_AGO + 60, closed=True)
    assert list(candidate.sources) == ["last/model.pt"]


# ── putting back ──────────────────────────────────────────────────────────────


def test_a_file_that_is_missing_is_put_back_as_it_was_published(work: Path, store: Path) -> None:
    save(work / "out" / "checkpoint.pth.tar", "epoch 1")
    folder = published(work, store, "out/**")
    (work / "out" / "checkpoint.pth.tar").unlink()
    (work / "out").rmdir()
    assert put_back(folder, work, ["out/**"]) == ["out/checkpoint.pth.tar"]
    assert read(work / "out" / "checkpoint.pth.tar") == "epoch 1"
    assert [entry.name for entry in work.iterdir()] == ["out"]
    watch = watcher(work, "out/**", published=folder)
    watch.ignore_present(before=0.0)
    assert not watch.ready(now=LONG_AGO + 1000, closed=True)


def test_an_older_file_is_replaced_and_a_newer_one_stays(work: Path, store: Path) -> None:
    save(work / "checkpoint.pth.tar", "epoch 5", at=LONG_AGO)
    folder = published(work, store, "checkpoint.pth.tar")
    assert put_back(folder, work, ["checkpoint.pth.tar"]) == []
    save(work / "checkpoint.pth.tar", "epoch 3", at=LONG_AGO - 100)
    assert put_back(folder, work, ["checkpoint.pth.tar"]) == ["checkpoint.pth.tar"]
    assert read(work / "checkpoint.pth.tar") == "epoch 5"
    save(work / "checkpoint.pth.tar", "epoch 7", at=LONG_AGO + 100)
    assert put_back(folder, work, ["checkpoint.pth.tar"]) == []
    assert read(work / "checkpoint.pth.tar") == "epoch 7"


def test_a_file_that_is_cut_off_gives_way_with_all_that_belongs_to_it(work: Path, store: Path) -> None:
    save(work / "model.pt", "model 1")
    save(work / "optim.pt", "optim 1")
    folder = published(work, store, "*.pt")
    save(work / "optim.pt", "optim 2", at=LONG_AGO + 400)
    save(work / "model.pt", "model 2")
    tear(work / "model.pt")
    assert put_back(folder, work, ["*.pt"]) == ["model.pt", "optim.pt"]
    assert (read(work / "model.pt"), read(work / "optim.pt")) == ("model 1", "optim 1")


def test_a_torn_file_under_a_new_name_is_set_aside(work: Path, store: Path) -> None:
    save(work / "epoch_1.pt", "epoch 1")
    folder = published(work, store, "epoch_*.pt")
    save(work / "epoch_2.pt", "epoch 2")
    tear(work / "epoch_2.pt")
    put_back(folder, work, ["epoch_*.pt"])
    assert sorted(entry.name for entry in work.iterdir()) == ["epoch_1.pt", "epoch_2.pt.incomplete"]


def test_an_old_file_that_was_cut_off_before_the_run_stays_and_does_not_undo_what_is_newer(work: Path, store: Path) -> None:
    save(work / "checkpoint.pt", "epoch 5")
    folder = published(work, store, "*.pt")
    save(work / "broken.pt", "of an older try")
    tear(work / "broken.pt", at=LONG_AGO - 172_800)
    save(work / "checkpoint.pt", "epoch 7", at=LONG_AGO + 400)
    assert put_back(folder, work, ["*.pt"]) == []
    assert sorted(entry.name for entry in work.iterdir()) == ["broken.pt", "checkpoint.pt"]


def test_a_link_to_the_file_that_was_there_at_submit_is_replaced_and_not_written_through(work: Path, store: Path) -> None:
    save(work / "checkpoint.pth.tar", "epoch 5")
    folder = published(work, store, "checkpoint.pth.tar")
    save(work.parent / "mine.pth.tar", "epoch 1", at=LONG_AGO - 100)
    (work / "checkpoint.pth.tar").unlink()
    (work / "checkpoint.pth.tar").symlink_to(work.parent / "mine.pth.tar")
    assert put_back(folder, work, ["checkpoint.pth.tar"]) == ["checkpoint.pth.tar"]
    assert (read(work / "checkpoint.pth.tar"), read(work.parent / "mine.pth.tar")) == ("epoch 5", "epoch 1")


def test_a_damaged_checkpoint_is_not_put_back(work: Path, store: Path) -> None:
    save(work / "checkpoint.pth.tar", "epoch 5")
    folder = published(work, store, "checkpoint.pth.tar")
    data = bytearray((folder / "checkpoint.pth.tar").read_bytes())
    data[40] ^= 1
    (folder / "checkpoint.pth.tar").write_bytes(data)
    (work / "checkpoint.pth.tar").unlink()
    with pytest.raises(CheckpointDamaged):
        put_back(folder, work, ["checkpoint.pth.tar"])
    assert not list(work.iterdir())


# ── files that are written again and again ────────────────────────────────────


class Rewritten:
    """Files that were written just before each look at them, so many seconds ago."""

    def __init__(self, work: Path, *names: str, ago: float = 0.0) -> None:
        self._ago = ago
        self.now = LONG_AGO
        self.warned: list[str] = []
        self._work, self._names = work, names
        self.watch = LinkedWatcher(work.parent / "links", work, names, warn=self.warned.append, timer=lambda: self.now)
        self.watch.ignore_present(before=LONG_AGO)

    def pass_seconds(self, seconds: int) -> list[Candidate]:
        """Until something can be taken."""
        for _ in range(seconds // 30):
            self.now += 30.0
            for name in self._names:
                save(self._work / name, f"{self.now}", at=self.now - self._ago)
            if found := self.watch.ready(now=self.now):
                return found
        return []


def test_a_file_that_is_never_quiet_is_taken_between_two_writes_after_ten_minutes(work: Path) -> None:
    training = Rewritten(work, "state.pt")
    [candidate] = training.pass_seconds(700)
    assert 600 <= training.now - LONG_AGO < 640 and training.warned == []
    assert training.watch.unchanged(candidate) and not candidate.again
    training.watch.done_with(candidate)
    published = training.now
    assert training.pass_seconds(700) and training.now - published >= 600


def test_a_file_that_changes_while_it_is_copied_is_tried_more_rarely_the_longer_that_takes_and_it_is_said_once(work: Path) -> None:
    training = Rewritten(work, "state.pt", ago=5.0)
    [candidate] = training.pass_seconds(700)
    assert training.now - LONG_AGO < 600  # it rests for a while
    training.now += 60.0  # of copying
    save(work / "state.pt", "new", at=training.now)
    assert not training.watch.unchanged(candidate)
    training.watch.not_taken(candidate)
    failed = training.now
    [candidate] = training.pass_seconds(2000)
    assert 540 <= training.now - failed < 580
    for _ in range(4):
        training.now += 60.0
        training.watch.not_taken(candidate)
        [candidate] = training.pass_seconds(2000)
    [words] = training.warned
    assert words.startswith("not published for 3") and "state.pt, since it is open, or written again" in words


def test_a_file_that_is_cut_off_whenever_it_is_looked_at_is_not_taken(work: Path) -> None:
    training = Rewritten(work, "state.pt")
    for _ in range(70):
        training.now += 30.0
        save(work / "state.pt", f"{training.now}", at=training.now)
        tear(work / "state.pt", at=training.now)
        assert training.watch.ready(now=training.now) == []
    assert len(training.warned) == 1


def test_of_several_files_a_half_written_save_is_not_taken(work: Path) -> None:
    training = Rewritten(work, "model.pt", "optim.pt")
    for name in ("model.pt", "optim.pt") * 50:
        training.now += 10.0
        save(work / name, f"{training.now}", at=training.now)
        if found := training.watch.ready(now=training.now):
            break
    assert name == "optim.pt" and {name for name, _, _ in found[0].fingerprint} == {"model.pt", "optim.pt"}
    assert training.now - LONG_AGO >= 600
