"""The tracker's contract, on PostgreSQL."""

from __future__ import annotations

from tests.contract.tracker import TrackerContract, run, tracker  # noqa: F401


class TestOnPostgres(TrackerContract):
    pass
