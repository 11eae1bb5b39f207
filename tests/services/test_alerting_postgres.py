"""Alerts, from the rule to the message, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.tracker.store import Tracker
from tests.borrowed import borrowed
from tests.receivers import hooks
from tests.unit import test_alerting
from tests.unit.test_alerting import Harness


@pytest.fixture
def harness(tmp_path: Path, address: str) -> Iterator[Harness]:
    with Tracker.open(address) as tracker, hooks() as kept:
        yield Harness(tmp_path, tracker, kept)


globals().update(borrowed(test_alerting))
