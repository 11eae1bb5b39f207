"""Alerts, from the rule to the message, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.tracker.store import Tracker
from tests.borrowed import borrowed
from tests.receivers import hooks
from tests.unit import test_alerting
from tests.unit.test_alerting import Scene


@pytest.fixture
def scene(tmp_path: Path, place: str) -> Iterator[Scene]:
    with Tracker.open(place) as tracker, hooks() as kept:
        yield Scene(tmp_path, tracker, kept)


globals().update(borrowed(test_alerting))
