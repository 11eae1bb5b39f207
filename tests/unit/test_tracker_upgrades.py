"""Stores of before, on a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.upgrades import UpgradeContract


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return tmp_path / "onward.db"


class TestOnAFile(UpgradeContract):
    pass
