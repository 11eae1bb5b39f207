"""A store that takes nothing: told once a minute, not once a request, and so is its end."""

from __future__ import annotations

import logging

import pytest

from onward.errors import StorageFull, StorageUnavailable
from onward.tracker.db.storage_health import EVERY, StorageHealth


def test_a_trouble_is_told_once_a_minute_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    now = [0.0]
    trouble = StorageHealth(lambda: now[0])
    for _ in range(int(EVERY * 2.5)):
        trouble.met(StorageFull("there is no room", hint="make room"))
        now[0] += 1
    trouble.over()
    trouble.over()
    entries = [(record.levelname, record.__dict__["action"], record.__dict__["said"]["refused"]) for record in caplog.records]
    assert entries == [("ERROR", "store", 1), ("ERROR", "store", 61), ("ERROR", "store", 121), ("WARNING", "store", 150)]
    assert "nothing can be stored: there is no room" in caplog.text


def test_one_that_comes_and_goes_fills_no_log_and_another_kind_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    trouble = StorageHealth(lambda: now[0])
    for _ in range(50):
        trouble.met(StorageFull("there is no room"))
        trouble.over()
        now[0] += 1
    trouble.met(StorageUnavailable("it does not answer"))
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "ERROR"]
    assert trouble.error is not None
    trouble.over()
    assert trouble.error is None
