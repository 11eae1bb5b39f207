"""A PostgreSQL and a RabbitMQ of the tests' own, in temporary folders; they go when the tests do."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from beds.postgres import Postgres, free_port, is_installed
from beds.rabbitmq import RabbitMQ
from onward.tracker.schema import metadata
from onward.tracker.store import Tracker
from tests.brokers import broker_of_its_own, new_vhost
from tests.needs import missing
from tests.services.clients import client  # noqa: F401

_DATABASE = "onward"


@contextlib.contextmanager
def _postgres_of_its_own() -> Iterator[Postgres]:
    if not is_installed():
        missing("PostgreSQL is not installed: apt-get install postgresql")
    top = Path(tempfile.mkdtemp(prefix="onward-pg-"))
    top.chmod(0o755)
    server = Postgres(top / "cluster", free_port())
    try:
        server.prepare()
        server.start()
        yield server
    finally:
        if server.daemon().process() is not None:
            server.stop(how="immediate")
        shutil.rmtree(top, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One for all tests: none of them ends it."""
    with _postgres_of_its_own() as server:
        Tracker.open(server.create(_DATABASE)).close()
        yield server


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """One that may be ended."""
    with _postgres_of_its_own() as server:
        yield server


@pytest.fixture
def address(postgres: Postgres) -> Iterator[str]:
    """The address of an empty store."""
    yield postgres.url(_DATABASE)
    names = ", ".join(f'"{table}"' for table in metadata.tables)
    now = "extract(epoch from now())"
    begin = f"INSERT INTO store VALUES (1, 1); INSERT INTO experiments (id, name, created, updated) VALUES (0, 'Default', {now}, {now})"
    postgres.sql(f"TRUNCATE {names} RESTART IDENTITY; {begin}", database=_DATABASE)


@pytest.fixture(scope="session")
def broker() -> Iterator[RabbitMQ]:
    """One for all tests: none of them ends it."""
    with broker_of_its_own() as server:
        yield server


@pytest.fixture
def own_broker() -> Iterator[RabbitMQ]:
    """One that may be killed."""
    with broker_of_its_own() as server:
        yield server


@pytest.fixture
def vhost(broker: RabbitMQ) -> str:
    """An empty virtual host of the shared one."""
    return new_vhost(broker)
