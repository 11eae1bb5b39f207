"""A RabbitMQ of the tests' own, in a temporary folder; it goes when they do."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from beds.rabbitmq import RabbitMQ, free_ports, is_installed
from tests.needs import missing


@contextlib.contextmanager
def broker_of_its_own() -> Iterator[RabbitMQ]:
    if not is_installed():
        missing("RabbitMQ is not installed: apt-get install rabbitmq-server")
    top = Path(tempfile.mkdtemp(prefix="onward-mq-"))
    top.chmod(0o755)
    server = RabbitMQ(top / "broker", free_ports())
    try:
        server.prepare()
        server.start()
        yield server
    finally:
        server.end()
        shutil.rmtree(top, ignore_errors=True)


def new_vhost(server: RabbitMQ) -> str:
    """The name of an empty virtual host: a broker to itself for one test."""
    name = f"test-{secrets.token_hex(4)}"
    server.add_vhost(name)
    return name
