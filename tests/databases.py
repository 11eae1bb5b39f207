"""Databases with all tables, for tests of what is done with them: a migrated one is made once in a process, then copied."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from onward.operations.tracker_access.location import OpenTracker, open_tracker, tracker_location
from onward.tracker.store import Tracker


def new_database(path: Path) -> Path:
    path.write_bytes(_migrated())
    path.chmod(0o600)
    return path


def tracker_in(folder: Path) -> AbstractContextManager[OpenTracker]:
    """A new server's tracker and tokens, in `tracker.db` of the folder."""
    return open_tracker(tracker_location({"HOME": str(folder)}, str(new_database(folder / "tracker.db"))))


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tracker.db"
        Tracker.open(path).close()
        assert [left.name for left in Path(folder).iterdir() if left.name.endswith("-wal")] == []
        return path.read_bytes()
