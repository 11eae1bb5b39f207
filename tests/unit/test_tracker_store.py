"""The tracker's contract, on a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.tracker import TrackerContract, run, tracker  # noqa: F401


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "onward.db"


class TestOnAFile(TrackerContract):
    pass
