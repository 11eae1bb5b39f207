"""Every reason for which a real broker lets nobody in has a sentence, and none of them holds the password."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from beds.certificates import Authority
from beds.rabbitmq import RabbitMQ
from onward.errors import HostUnreachable, InvalidInput, NotAllowed, OnwardError
from onward.gateway.rabbitmq.connection import Broker
from tests.gateways import broker_at


def connect(broker: Broker) -> None:
    async def once() -> None:
        async with broker.connected() as connection:
            await connection.channel()

    asyncio.run(once())


def test_a_connection_plain_and_by_tls(broker: RabbitMQ, vhost: str) -> None:
    connect(broker_at(broker, vhost))
    connect(broker_at(broker, vhost, tls=True))
    connect(replace(broker_at(broker, vhost, tls=True), host="localhost"))


def test_every_refusal_has_its_sentence(
    broker: RabbitMQ, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    plain, tls = broker_at(broker), broker_at(broker, tls=True)
    stranger = Authority(tmp_path / "tls")
    stranger.make(owner="root")
    refused: list[tuple[Broker, type[OnwardError], str]] = [
        (replace(plain, password="hunter2"), NotAllowed, "the broker refused the login"),
        (replace(plain, vhost="nowhere"), NotAllowed, "may not use the virtual host nowhere"),
        (replace(plain, port=1), HostUnreachable, "cannot be reached: Connection refused"),
        (replace(plain, host="no.such.host.invalid"), HostUnreachable, "cannot be reached: "),
        (replace(plain, port=tls.port), HostUnreachable, "cannot be reached: "),
        (replace(tls, port=plain.port), HostUnreachable, "does not speak TLS"),
        (replace(tls, ca_file=stranger.certificate), NotAllowed, "is not trusted"),
        (replace(tls, ca_file=None), NotAllowed, "is not trusted"),
        (replace(tls, ca_file=tmp_path / "none"), InvalidInput, "is not a PEM file"),
    ]
    for wrong, kind, said in refused:
        with pytest.raises(kind) as caught:
            connect(wrong)
        assert said in caught.value.message and caught.value.hint, (said, caught.value.message)
        assert wrong.password not in f"{caught.value} {caught.value.hint} {caplog.text} {capfd.readouterr()}"
