"""A full store is tried again when there is room, or ever more seldom."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path
from typing import Any

import pytest

from onward.checkpoints.manifest import Manifest
from onward.checkpoints.publishing import publisher as staging
from onward.checkpoints.publishing.full_store import FullStoreRetry
from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import ManualClock
from onward.model.spec import CheckpointRule
from onward.sdk import contract
from onward.sdk.run import TrainingRun
from tests.disks import refuse_room

HOURS = 4 * 3600.0


def tries(watch: FullStoreRetry, clock: ManualClock, *, need: int, free: int | None) -> list[float]:
    """When it is tried in four hours, looking every five seconds."""
    began, tried = clock.now(), []
    while clock.now() < began + HOURS:
        if watch.may_try(clock.now(), free=free):
            tried.append(clock.now() - began)
            watch.failed(clock.now(), need=need, free=free)
        clock.sleep(5.0)
    return tried


def test_a_quota_that_stays_full_is_tried_ever_more_seldom() -> None:
    tried = tries(FullStoreRetry(), ManualClock(), need=500, free=10**6)
    assert tried[:5] == [0.0, 5.0, 15.0, 35.0, 75.0]
    assert len(tried) < 35, "and not 2,880 times"
    assert max(later - earlier for earlier, later in itertools.pairwise(tried)) == 600.0


def test_a_disk_that_was_full_is_tried_as_soon_as_there_is_room() -> None:
    watch = FullStoreRetry()
    watch.failed(0.0, need=500, free=499)
    assert not watch.may_try(1.0, free=499)
    assert not watch.may_try(1.0, free=None)
    assert watch.may_try(1.0, free=500)


def test_free_space_says_nothing_about_a_quota() -> None:
    watch = FullStoreRetry()
    watch.failed(0.0, need=500, free=10**6)
    assert not watch.may_try(1.0, free=2 * 10**6)
    assert watch.may_try(5.0, free=10**6)


def test_after_a_success_the_next_failure_is_tried_again_soon() -> None:
    watch = FullStoreRetry()
    for at in (0.0, 10.0, 100.0):
        watch.failed(at, need=1, free=None)
    watch.succeeded()
    assert not watch.waiting and watch.may_try(100.0, free=None)
    watch.failed(200.0, need=1, free=None)
    assert watch.may_try(205.0, free=None)


class Full:
    """A publisher before a store whose quota is used up."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.run = TrainingRun(folder=folder, leg=1, checkpoints=folder / "local", spool=folder / "spool", resume=None, by_hand=False)
        (folder / "local").mkdir()
        watcher = SaveWatcher(folder / "local")
        rule = CheckpointRule(keep=2)
        self.publisher = CheckpointPublisher(
            watcher, folder / "store", leg=1, rule=rule, resumed_step=None, progress=lambda: (None, {}), clock=self.clock, shares=None
        )

    def save(self, step: int) -> None:
        with self.run.checkpoint(step) as folder:
            (folder / "w").write_bytes(b"w" * 100)

    def work(self, *, closed: bool = False) -> list[tuple[str, int]]:
        return [(report.kind, report.step) for report in self.publisher.work(closed=closed)]


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Full:
    monkeypatch.delenv(contract.STOP_FILE, raising=False)
    return Full(tmp_path)


def test_a_publisher_leaves_a_full_store_alone_and_still_tells_each_missed_step_once(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[int] = []

    def counting(*given: Any, **more: Any) -> Manifest:
        published.append(1)
        return publish(*given, **more)

    monkeypatch.setattr(staging, "publish", counting)
    with monkeypatch.context() as patch:
        refuse_room(patch, errno.EDQUOT)
        full.save(1)
        assert full.work() == [("missed", 1)] and full.publisher.waits_for_room
        full.save(2)
        assert full.work() == [("missed", 2)] and full.work() == []
        assert len(published) == 1, "the second was not even tried"
        full.clock.sleep(5.0)
        assert full.work() == [("missed", 1)] and len(published) == 2
    full.clock.sleep(9.0)
    assert full.work() == []
    full.clock.sleep(1.0)
    assert sorted(full.work()) == [("published", 1), ("published", 2)]
    assert not full.publisher.waits_for_room


def test_at_the_end_of_a_leg_it_is_tried_at_once(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        refuse_room(patch, errno.EDQUOT)
        full.save(1)
        for _ in range(8):
            full.work()
            full.clock.sleep(600.0)
        full.work()
    assert full.work() == [] and full.publisher.waits_for_room
    assert full.work(closed=True) == [("published", 1)]
