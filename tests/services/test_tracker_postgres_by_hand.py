"""Runs that nobody submitted, on PostgreSQL."""

from __future__ import annotations

from tests.borrowed import borrowed
from tests.contract.tracker import tracker  # noqa: F401
from tests.processes import test_tracker_by_hand
from tests.processes.test_tracker_by_hand import each_look_looks, hand  # noqa: F401

globals().update(borrowed(test_tracker_by_hand))
