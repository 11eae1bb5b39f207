"""Wide records, on PostgreSQL."""

from __future__ import annotations

from tests.borrowed import borrowed
from tests.contract.tracker import run, tracker  # noqa: F401
from tests.unit import test_tracker_wide

globals().update(borrowed(test_tracker_wide))
