"""The contract of the gateway's store, on PostgreSQL, beside the tracker's tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beds.postgres import Postgres
from tests.contract.requests import RequestsContract, store  # noqa: F401


@pytest.fixture
def requests_place(postgres: Postgres) -> Iterator[str]:
    yield postgres.url("onward")
    postgres.sql("DROP TABLE requests, request_messages, request_store", database="onward")


class TestOnPostgres(RequestsContract):
    pass
