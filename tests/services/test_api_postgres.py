"""What the page asks for, as its tests on a file say it, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.operations.tracker_access.location import open_tracker, tracker_location
from tests.borrowed import borrowed
from tests.unit import (
    test_api_aggregates,
    test_api_bests,
    test_api_export,
    test_api_filter_words,
    test_api_metric_keys,
    test_api_overview,
    test_api_rows,
    test_api_sparklines,
    test_api_views,
)
from tests.unit.test_api_routes import Harness

_MODULES = (
    *(test_api_aggregates, test_api_bests, test_api_export, test_api_filter_words, test_api_metric_keys),
    *(test_api_overview, test_api_rows, test_api_sparklines, test_api_views),
)


@pytest.fixture
def harness(tmp_path: Path, address: str) -> Iterator[Harness]:
    with open_tracker(tracker_location({"ONWARD_STATE_DIR": str(tmp_path / "state")}, address)) as opened:
        yield Harness(tmp_path, opened)


globals().update(borrowed(*_MODULES))
