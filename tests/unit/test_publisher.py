from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onward.checkpoints.manifest import Manifest, read_manifest, verify
from onward.checkpoints.publishing import delete_old
from onward.checkpoints.publishing import publish as publishing
from onward.checkpoints.publishing import publisher as staging
from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.restoring.newest import published_checkpoints, published_names_of
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import ManualClock
from onward.model.checkpoint import CheckpointName
from onward.model.spec import BestRule, CheckpointRule
from onward.sdk import contract
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks
from onward.sdk.run import TrainingRun
from onward.sdk.saving import committed, step_of
from tests.disks import refuse_room, small_disk

LATER = 10_000_000_000.0  # every file has been quiet by then


class Bench:
    """A training's side and a publisher's side of one leg, in one process."""

    def __init__(self, folder: Path, *, leg: int = 1, rule: CheckpointRule | None = None, resumed: int | None = None) -> None:
        self.local, self.store = folder / "local", folder / "store"
        self.local.mkdir(parents=True, exist_ok=True)
        self.leg, self.rule, self.resumed = leg, rule or CheckpointRule(), resumed
        self.clock = ManualClock(LATER)
        self.logged: tuple[int | None, Mapping[str, float]] = (None, {})
        self.run = TrainingRun(folder=folder, leg=leg, checkpoints=self.local, spool=folder / "spool", resume=None, by_hand=False)
        self.clock = ManualClock(LATER)
        self.begin()

    def begin(self) -> None:
        """A publisher as it starts: it knows nothing of one before it."""
        self.publisher = CheckpointPublisher(
            SaveWatcher(self.local),
            self.store,
            leg=self.leg,
            rule=self.rule,
            resumed_step=self.resumed,
            progress=lambda: self.logged,
            clock=self.clock,
        )

    def save(self, *steps: int, size: int = 100, **metrics: float) -> None:
        for step in steps:
            if metrics:
                self.run.log(metrics, step)
            with self.run.checkpoint(step) as folder:
                (folder / "w").write_bytes(b"%d." % step * size)

    def write(self, name: str, content: bytes = b"x") -> None:
        (self.local / name).write_bytes(content)

    def work(self, *, closed: bool = False) -> list[tuple[str, int]]:
        return [(report.kind, report.step) for report in self.publisher.work(closed=closed)]

    def steps(self) -> list[int]:
        return [name.step for name in published_names_of(self.store)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.delenv(contract.STOP_FILE, raising=False)
    return Bench(tmp_path)


def test_a_committed_checkpoint_is_published_reported_and_leaves_the_node(bench: Bench) -> None:
    bench.save(10)
    [report] = bench.publisher.work()
    assert (report.kind, report.step, report.bytes) == ("published", 10, 300)
    assert report.save_seconds >= 0 and report.stage_seconds >= 0
    assert verify(bench.store / "leg-0001.step-00000010").made_by == "sdk"
    assert os.listdir(bench.local) == []
    assert bench.work() == []


def test_a_checkpoint_is_reported_before_anything_is_let_go(bench: Bench) -> None:
    """Killed between the two, it is reported again: never published and unknown."""
    bench.rule = CheckpointRule(keep=2)
    bench.begin()
    for step in (1, 2):
        bench.save(step)
        bench.work()
    bench.save(3)
    assert next(bench.publisher.work()).step == 3  # and no more of it: as after a kill
    assert bench.steps() == [1, 2, 3]
    assert os.listdir(bench.local) == ["step-00000003"]
    bench.begin()
    assert bench.work() == [("published", 3)]
    assert (bench.steps(), os.listdir(bench.local)) == ([2, 3], [])


def test_what_the_rule_lets_go_is_deleted_after_the_new_one_is_there(bench: Bench) -> None:
    bench.rule = CheckpointRule(keep=2, keep_every=4, best=BestRule(metric="loss", mode="min"))
    bench.begin()
    for step, loss in enumerate([0.9, 0.8, 0.1, 0.7, 0.6, 0.5, 0.4], start=1):
        bench.save(step, loss=loss)
        bench.work()
    assert bench.steps() == [3, 4, 6, 7]


def test_old_checkpoints_of_earlier_legs_are_let_go_too(tmp_path: Path) -> None:
    first = Bench(tmp_path)
    for step in (1, 2, 3):
        first.save(step)
        first.work()
    second = Bench(tmp_path, leg=2, rule=CheckpointRule(keep=2), resumed=3)
    second.save(4)
    second.work()
    assert published_names_of(second.store) == [CheckpointName(1, 3), CheckpointName(2, 4)]


def test_foreign_and_hidden_entries_of_the_store_are_never_touched(bench: Bench) -> None:
    theirs = ("my-own", ".hidden", "leg-0001.step-00000001.bak", ".deleting-notes")
    for name in theirs:
        (bench.store / name).mkdir(parents=True)
    bench.rule = CheckpointRule(keep=2)
    bench.begin()
    for step in (1, 2, 3, 4):
        bench.save(step)
        bench.work()
    assert set(os.listdir(bench.store)) == {*theirs, "leg-0001.step-00000003", "leg-0001.step-00000004"}


def test_a_damaged_checkpoint_does_not_count_among_those_kept(bench: Bench) -> None:
    bench.rule = CheckpointRule(keep=2)
    bench.begin()
    for step in (1, 2, 3):
        bench.save(step)
        bench.work()
    os.truncate(bench.store / "leg-0001.step-00000003" / "w", 1)
    bench.save(4)
    bench.work()
    assert [c.name.step for c in published_checkpoints(bench.store)] == [2, 4]


def test_one_that_cannot_be_deleted_costs_neither_the_report_nor_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench.rule = CheckpointRule(keep=2)
    bench.begin()
    for step in (1, 2):
        bench.save(step)
        bench.work()

    def refuse(_store: Path, _name: CheckpointName) -> None:
        raise PermissionError(errno.EACCES, "denied")

    with monkeypatch.context() as broken:
        broken.setattr(delete_old, "delete", refuse)
        bench.save(3)
        assert bench.work() == [("published", 3)]
    assert "cannot delete" in caplog.text
    bench.save(4)
    bench.work()
    assert bench.steps() == [3, 4]


# ── saves that outrun it ──────────────────────────────────────────────────────


def test_when_saves_outrun_it_the_newest_goes_first_and_older_ones_are_skipped_only_after_it(bench: Bench) -> None:
    bench.save(*range(1, 8))
    answer = bench.work()
    assert answer == [("published", 7), *(("skipped", step) for step in (1, 2, 3, 4)), ("published", 5), ("published", 6)]
    assert os.listdir(bench.local) == []


def test_when_the_best_is_wanted_none_is_skipped(bench: Bench) -> None:
    bench.rule = CheckpointRule(keep=2, best=BestRule(metric="loss", mode="min"))
    bench.begin()
    for step, loss in enumerate([0.5, 0.1, 0.9, 0.8, 0.7, 0.6], start=1):
        bench.save(step, loss=loss)
    assert [kind for kind, _ in bench.work()] == ["published"] * 6
    assert bench.steps() == [2, 5, 6]


# ── shares of several ranks ───────────────────────────────────────────────────


def test_shares_that_make_no_checkpoint_are_told_once_with_the_reason(bench: Bench) -> None:
    bench.publisher._shares = bench.local

    def save(step: int, rank: int, name: str) -> None:
        partial = partial_share(bench.local, step, rank)
        partial.mkdir(parents=True)
        (partial / name).write_text(f"of rank {rank}")
        commit_share(partial, bench.local, step, Ranks(rank, 2), {"seconds": 0.1, "metrics": {}})

    for rank in (0, 1):
        save(3, rank, "model.pt")
    [report] = bench.publisher.work()
    assert (report.kind, report.step) == ("refused", 3) and "ranks 0 and 1 wrote different versions of model.pt" in report.reason
    save(5, 0, "0.pt")
    assert bench.work() == []
    [report] = bench.publisher.last_words()
    assert report.reason == "the checkpoint of step 5: the share of rank 1 is missing"
    assert list(bench.publisher.last_words()) == []


def test_shares_of_the_newest_step_are_put_first_once_the_training_has_left(bench: Bench) -> None:
    bench.publisher._shares = bench.local
    for step in (3, 5, 7):
        partial = partial_share(bench.local, step, 0)
        partial.mkdir(parents=True)
        (partial / "0.pt").write_text("w")
        commit_share(partial, bench.local, step, Ranks(0, 1), {"seconds": 0.1, "metrics": {}})
    assert bench.work() == [("published", 3)], "while it runs, one step at a look"
    assert bench.work(closed=True) == [("published", 7), ("published", 5)]


# ── a full store ──────────────────────────────────────────────────────────────


def test_a_full_store_is_a_miss_and_the_checkpoint_goes_when_there_is_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.save(1)
    bench.work()
    bench.save(2)
    with monkeypatch.context() as full:
        refuse_room(full, errno.EDQUOT)
        [report] = bench.publisher.work()
        assert (report.kind, report.step) == ("missed", 2)
        assert "your quota" in report.reason and str(bench.store) in report.reason and "200 B" in report.reason
        assert bench.work() == [], "not tried again at once"
        bench.clock.sleep(5.0)
        assert bench.work() == [("missed", 2)]
    bench.clock.sleep(10.0)
    assert bench.steps() == [1]
    verify(bench.store / "leg-0001.step-00000001")
    assert bench.work() == [("published", 2)]
    assert bench.steps() == [1, 2]


def test_while_the_store_takes_nothing_the_two_newest_stay_on_the_node_and_older_ones_go(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full store for a day must not fill the node's disk, which would end the training."""
    with monkeypatch.context() as full:
        refuse_room(full)
        entries: list[tuple[str, int]] = []
        for step in range(1, 7):
            bench.save(step)
            entries += bench.work()
            bench.clock.sleep(700.0)
        assert [step for kind, step in entries if kind == "skipped"] == [1, 2, 3, 4]
        assert [step_of(folder) for folder in committed(bench.local)] == [5, 6]
    bench.clock.sleep(700.0)
    bench.work()
    assert bench.steps() == [5, 6]


def test_what_the_rule_keeps_stays_on_the_node_while_the_store_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, rule=CheckpointRule(keep_every=2))
    with monkeypatch.context() as full:
        refuse_room(full)
        for step in range(1, 7):
            bench.save(step)
            bench.work()
        bench.work()
        assert [step_of(folder) for folder in committed(bench.local)] == [2, 4, 5, 6]


def test_a_full_store_that_refuses_even_the_metrics_is_a_miss_and_no_crash(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[int | None, Mapping[str, float]]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    bench.save(2)
    bench.write("model.pt")
    with monkeypatch.context() as full:
        full.setattr(bench.publisher, "_progress", refuse)
        assert bench.work() == [("missed", 2), ("missed", 0)]
    assert bench.work() == [("published", 2), ("published", 3)]


def test_on_a_really_full_disk_the_last_good_one_stays_and_the_newest_follows(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=128) as disk:
        bench = Bench(tmp_path)
        bench.store = disk / "store"
        bench.begin()
        (disk / "ballast").write_bytes(b"b" * 40_000)
        bench.save(1, size=25_000)
        assert bench.work() == [("published", 1)]
        bench.save(2, size=25_000)
        [report] = bench.publisher.work()
        assert report.kind == "missed" and str(disk) in report.reason and "50.0 kB" in report.reason
        assert os.listdir(bench.store) == ["leg-0001.step-00000001"]
        (disk / "ballast").unlink()
        assert bench.work() == [("published", 2)]
        for name in published_names_of(bench.store):
            verify(bench.store / str(name))


def test_a_checkpoint_that_changes_while_it_is_carried_is_taken_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("model_5.pt", b"old")
    real = os.fsync

    def fsync(handle: int) -> None:
        bench.write("model_5.pt", b"rewritten")
        real(handle)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "fsync", fsync)
        assert bench.work() == []
    assert bench.steps() == []
    assert bench.work() == [("published", 5)]
    assert (bench.store / "leg-0001.step-00000005" / "model_5.pt").read_bytes() == b"rewritten"


def test_a_checkpoint_that_the_training_removes_meanwhile_is_no_miss(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.save(5)

    def late(sources: Mapping[str, Path], store: Path, name: CheckpointName, **others: Any) -> Manifest:
        shutil.rmtree(bench.local / "step-00000005")
        return publish(sources, store, name, **others)

    monkeypatch.setattr(staging, "publish", late)
    assert bench.work() == []


# ── files that name no step, or one again ─────────────────────────────────────


def test_files_without_a_number_take_the_step_that_was_logged(bench: Bench) -> None:
    bench.write("model.pt")
    bench.logged = (41, {"loss": 0.5, "broken": float("nan"), "huge": float("inf")})
    assert bench.work() == [("published", 41)]
    manifest = read_manifest(bench.store / "leg-0001.step-00000041")
    assert (manifest.made_by, dict(manifest.metrics)) == ("files", {"loss": 0.5})
    assert (bench.local / "model.pt").exists(), "a training's own files stay its own"


def test_files_without_a_number_never_take_a_step_twice_nor_go_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, leg=2, resumed=100)
    for index, logged in enumerate([None, 50, 101, 200, 200]):
        bench.logged = (logged, {})
        bench.write("model.pt", b"x" * (index + 1))
        assert len(bench.work()) == 1
    assert bench.steps() == [103, 200, 201]
    newest = bench.store / str(published_names_of(bench.store)[-1])
    assert (newest / "model.pt").read_bytes() == b"x" * 5


def test_the_newest_number_written_again_takes_the_place_of_its_earlier_version(bench: Bench) -> None:
    for content in (b"first", b"second"):
        bench.write("model_7.pt", content)
        assert bench.work() == [("published", 7)]
    assert bench.steps() == [7]
    assert (bench.store / "leg-0001.step-00000007" / "model_7.pt").read_bytes() == b"second"
    assert os.listdir(bench.store) == ["leg-0001.step-00000007"]


def test_an_older_number_written_again_is_published_as_the_next_step(bench: Bench) -> None:
    """It is newer than all of them."""
    for name, content in (("model_7.pt", b"first"), ("model_9.pt", b"other"), ("model_7.pt", b"second")):
        bench.write(name, content)
        bench.clock.sleep(60)  # old ones are looked into once a minute
        bench.work()
    assert bench.steps() == [7, 9, 10]
    assert (bench.store / "leg-0001.step-00000010" / "model_7.pt").read_bytes() == b"second"


def test_a_growing_group_replaces_its_own_earlier_version(bench: Bench) -> None:
    """And does not become 501, 502."""
    (bench.local / "checkpoint-500").mkdir()
    for name in ("a", "b", "c"):
        bench.write(f"checkpoint-500/{name}")
        assert bench.work() == [("published", 500)]
    assert bench.steps() == [500]
    assert sorted(verify(bench.store / "leg-0001.step-00000500").files) == [f"checkpoint-500/{name}" for name in ("a", "b", "c")]


def test_a_publisher_that_is_started_again_replaces_what_has_grown_meanwhile(bench: Bench) -> None:
    bench.write("model_500.pt")
    bench.work()
    bench.write("optim_500.pt")
    bench.begin()
    assert bench.work() == [("published", 500)]
    assert sorted(verify(bench.store / "leg-0001.step-00000500").files) == ["model_500.pt", "optim_500.pt"]


def test_a_publisher_that_is_started_again_copies_nothing_anew_that_has_not_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("model_500.pt")
    bench.work()
    bench.begin()

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("copied again")

    monkeypatch.setattr(publishing, "copy_files", forbidden)
    assert bench.work() == [("published", 500)], "told again, as it may not have been heard"


def test_a_publisher_that_is_started_again_goes_on_counting(bench: Bench) -> None:
    for content in (b"1", b"22", b"333"):
        bench.write("model.pt", content)
        bench.begin()
        bench.work()
    assert bench.steps() == [0, 1, 2]


def test_a_late_file_without_a_number_replaces_what_was_published_without_it(bench: Bench) -> None:
    bench.logged = (41, {})
    bench.write("model.pt")
    os.utime(bench.local / "model.pt", (LATER - 100, LATER - 100))
    assert bench.work() == [("published", 41)]
    bench.logged = (45, {})
    bench.write("optim.pt")
    os.utime(bench.local / "optim.pt", (LATER - 50, LATER - 50))
    bench.clock.sleep(60)
    assert bench.work() == [("published", 41)]
    assert sorted(verify(bench.store / "leg-0001.step-00000041").files) == ["model.pt", "optim.pt"]


def test_a_file_that_appears_in_a_group_while_it_is_copied_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("model_5.pt")
    real = os.fsync

    def fsync(handle: int) -> None:
        if not (bench.local / "optim_5.pt").exists():
            bench.write("optim_5.pt")
        real(handle)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "fsync", fsync)
        assert bench.work() == []
    assert bench.steps() == [] and os.listdir(bench.store) == []
    assert bench.work() == [("published", 5)]
    assert sorted(verify(bench.store / "leg-0001.step-00000005").files) == ["model_5.pt", "optim_5.pt"]


def test_a_file_beside_that_changes_while_it_is_copied_stands_in_the_way_only_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("model_5.pt")
    bench.write("state.db")
    real, grown = os.fsync, 1

    def fsync(handle: int) -> None:
        nonlocal grown
        grown += 1
        bench.write("state.db", b"x" * grown)
        os.utime(bench.local / "state.db", (LATER - 10, LATER - 10))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    assert bench.work() == []
    assert bench.work() == [("published", 5)]
    assert sorted(verify(bench.store / "leg-0001.step-00000005").files) == ["model_5.pt"]


def test_what_is_not_whole_when_the_training_has_gone_is_refused_once_with_the_reason(bench: Bench) -> None:
    for name in ("model_1.pt", "optim_1.pt"):
        bench.write(name)
    bench.work()
    bench.write("model_2.pt")
    [report] = bench.publisher.work(closed=True)
    assert (report.kind, report.step) == ("refused", 2)
    assert report.reason == (
        "the checkpoint of step 2 is incomplete and was not published: optim_2.pt, which earlier checkpoints have, had not been written"
    )
    assert bench.work(closed=True) == [] and bench.steps() == [1]


def test_numbers_that_begin_again_in_a_new_leg_are_newer_all_the_same(tmp_path: Path) -> None:
    first = Bench(tmp_path)
    first.write("epoch_9.pt", b"leg 1")
    first.work()
    shutil.rmtree(first.local)
    second = Bench(tmp_path, leg=2, resumed=9)
    second.write("epoch_1.pt", b"leg 2")
    second.work()
    assert published_names_of(second.store)[-1] == CheckpointName(2, 1)


def test_the_last_look_takes_what_has_not_been_quiet(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.publisher = CheckpointPublisher(
        SaveWatcher(bench.local, quiet_seconds=float("inf")),
        bench.store,
        leg=1,
        rule=CheckpointRule(),
        resumed_step=None,
        progress=lambda: (None, {}),
        clock=ManualClock(LATER),
    )
    bench.write("model_3.pt")
    assert bench.work() == []
    assert bench.work(closed=True) == [("published", 3)]


def test_a_publisher_clears_away_what_killed_legs_left_half_published(tmp_path: Path) -> None:
    for name in (".leg-0001.step-00000005.partial", ".deleting-leg-0001.step-00000002"):
        (tmp_path / "store" / name).mkdir(parents=True)
    Bench(tmp_path, leg=2)
    assert os.listdir(tmp_path / "store") == []


class SlowClock(ManualClock):
    """Every look at it takes ten seconds."""

    def now(self) -> float:
        self.sleep(10.0)
        return super().now()


def test_a_checkpoint_that_all_ranks_write_is_reported_with_the_time_its_shares_took(tmp_path: Path) -> None:
    local, store = tmp_path / "local", tmp_path / "store"
    for rank in range(2):
        partial = partial_share(local, 9, rank)
        partial.mkdir(parents=True)
        (partial / f"{rank}.pt").write_text("x")
        commit_share(partial, local, 9, Ranks(rank, 2), {"seconds": 0.5, "metrics": {}})
    watcher, rule = SaveWatcher(local), CheckpointRule()
    publisher = CheckpointPublisher(
        watcher, store, leg=1, rule=rule, resumed_step=None, progress=lambda: (None, {}), clock=SlowClock(), shares=local
    )
    [report] = publisher.work()
    assert report.kind == "published" and report.stage_seconds == 30.0, "two shares of 10 s each, and putting them together"


def test_at_the_end_the_shares_of_the_newest_step_go_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.publisher._shares = bench.local
    for step in (1, 2):
        partial = partial_share(bench.local, step, 0)
        partial.mkdir(parents=True)
        (partial / "w").write_text(str(step))
        commit_share(partial, bench.local, step, Ranks(0, 1), {"seconds": 0.1, "metrics": {}})
    order: list[int] = []
    monkeypatch.setattr("onward.checkpoints.publishing.publisher.put_share", lambda share, *_, **__: order.append(share.step))
    bench.work(closed=True)
    assert order == [2, 1]
