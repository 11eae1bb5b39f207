"""The tracker's contract, on a file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlalchemy import text

from onward.tracker.store import Tracker
from tests.contract.tracker import TrackerContract, run, tracker  # noqa: F401
from tests.databases import new_database


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return new_database(tmp_path / "onward.db")


class TestOnAFile(TrackerContract):
    def test_room_that_nothing_uses_any_more_goes_back_to_the_disk(self, tracker: Tracker, run: str) -> None:  # noqa: F811
        for n in range(8):
            tracker.ingest.points(run, [(f"noise/{n}/{i}", step, 1e9, random.random()) for i in range(10) for step in range(10_000)])
        tracker.upkeep.tidy(resting=0)
        tracker.runs.delete(run)
        before = _pages(tracker)
        for _ in range(10):
            tracker.upkeep.shrink()
        assert _pages(tracker) < before / 2  # some are kept for what comes next


def _pages(tracker: Tracker) -> int:  # noqa: F811
    with tracker.reading() as connection:
        return int(connection.execute(text("PRAGMA page_count")).scalar_one())
