"""Runs counted by what they share, on PostgreSQL."""

from __future__ import annotations

from tests.borrowed import borrowed
from tests.unit import test_api_run_groups
from tests.unit.test_api_run_groups import harness  # noqa: F401

globals().update(borrowed(test_api_run_groups))
