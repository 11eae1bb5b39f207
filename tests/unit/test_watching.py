from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.rundir.claim import claim
from onward.rundir.layout import RunDir
from onward.rundir.root.layout import OWN
from onward.supervisor.stop.run_folder_watch import LOOK_SECONDS, ChangedFolder, FolderLooks, StopRequest


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "2026-11-15_A_digits")
    made.make()
    claim(made, 3, job="7")
    return made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Folders that were listed."""
    found: list[str] = []
    real = os.listdir

    def listdir(path: str | int = ".") -> list[str]:
        found.append(os.path.basename(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path))
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    yield found


def test_a_stop_request_is_seen_at_the_next_look_and_goes_when_it_does(run: RunDir, clock: ManualClock) -> None:
    looks = FolderLooks(run, 3, now=clock.now)
    looks.look()
    assert not looks.stop_requested
    run.stop_request.write_text("{}")
    looks.look()
    assert looks.stop_requested
    run.stop_request.unlink()
    looks.look()
    assert not looks.stop_requested


def test_a_later_legs_claim_is_seen_within_two_looks(run: RunDir, clock: ManualClock) -> None:
    looks = FolderLooks(run, 3, now=clock.now)
    looks.look()
    assert looks.fenced_by == 0
    claim(run, 4, job="8")
    looks.look()
    looks.look()
    assert looks.fenced_by == 4


def test_a_deleted_folder_is_believed_at_the_second_look(run: RunDir, clock: ManualClock) -> None:
    looks = FolderLooks(run, 3, now=clock.now)
    looks.look()
    (run.root / OWN).mkdir()
    shutil.rmtree(run.path)
    looks.look()
    looks.look()
    assert not looks.deleted
    looks.look()
    assert looks.deleted


def test_a_folder_whose_root_is_not_seen_is_not_deleted(run: RunDir, clock: ManualClock) -> None:
    """As on a bare mount point."""
    shutil.rmtree(run.path)
    looks = FolderLooks(run, 3, now=clock.now)
    for _ in range(6):
        looks.look()
    assert not looks.deleted


def test_a_folder_that_lacks_only_its_spec_is_not_deleted(run: RunDir, clock: ManualClock) -> None:
    (run.root / OWN).mkdir()
    run.spec.unlink(missing_ok=True)
    shutil.rmtree(run.claims)
    looks = FolderLooks(run, 3, now=clock.now)
    for _ in range(6):
        looks.look()
    assert not looks.deleted


def test_claims_are_listed_only_when_their_folder_has_changed_and_once_a_minute(run: RunDir, clock: ManualClock, listed: list[str]) -> None:
    looks = FolderLooks(run, 3, now=clock.now)
    for _ in range(int(60 / LOOK_SECONDS)):
        looks.look()
        clock.sleep(LOOK_SECONDS)
    assert listed == ["claims"]
    before = run.claims.stat()
    claim(run, 4, job="8")
    os.utime(run.claims, ns=(before.st_atime_ns, before.st_mtime_ns))  # within the grain of the server's clock
    for _ in range(2):
        looks.look()
    assert listed == ["claims", "claims"] and looks.fenced_by == 4


def test_a_folder_that_is_not_there_yet_changes_when_it_comes(tmp_path: Path, clock: ManualClock) -> None:
    folder = ChangedFolder(tmp_path / "late", now=clock.now)
    assert folder.changed()
    assert not folder.changed()
    (tmp_path / "late").mkdir()
    assert folder.changed()


def test_however_often_it_is_asked_a_request_is_looked_for_every_few_seconds(run: RunDir, clock: ManualClock) -> None:
    asked = StopRequest(run, clock.now)
    assert not asked.to_stop()
    run.stop_request.write_text("{}")
    assert not asked.to_stop()
    clock.sleep(LOOK_SECONDS)
    assert asked.to_stop()
