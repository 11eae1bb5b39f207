"""Stores of before, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beds.postgres import Postgres
from tests.contract.upgrades import UpgradeContract


@pytest.fixture
def bare(postgres: Postgres) -> Iterator[str]:
    yield postgres.create("before")
    postgres.sql('DROP DATABASE "before" WITH (FORCE)')


class TestOnPostgres(UpgradeContract):
    pass
