"""Run folders that are tailed, and what a relay was told, on PostgreSQL."""

from __future__ import annotations

from tests.borrowed import borrowed
from tests.contract.tracker import tracker  # noqa: F401
from tests.unit import test_tracker_files, test_tracker_relayed
from tests.unit.test_tracker_files import folder, root  # noqa: F401
from tests.unit.test_tracker_relayed import run  # noqa: F401

globals().update(borrowed(test_tracker_files, test_tracker_relayed))
