"""The gateway and a broker that goes away: restarted, killed, cut off, or not there yet. Nothing is lost, and nothing needs a person."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from pathlib import Path

import pika
import pytest

from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from onward.clock import SystemClock
from onward.errors import NotAllowed
from onward.gateway.main import Gateway, GatewayParts
from onward.gateway.rabbitmq import connection as broker_module
from onward.gateway.rabbitmq import publisher
from onward.model.requests.gateway_settings import GatewaySettings
from onward.model.requests.outcome import Outcome, OutcomeState
from onward.model.requests.request import RequestRecord
from onward.tracker.requests.store import Requests
from tests.gateway_old import OldProducer
from tests.gateways import FakeRecipes, FakeServe, broker_at, gateway_at

PATIENCE = 60.0


def send(old: OldProducer, own: str, queue: str = "mine") -> None:
    body = json.dumps({"id": own, "recipe": "echo"}).encode()
    old.channel.basic_publish("", "onward.requests", body, pika.BasicProperties(delivery_mode=2, reply_to=queue, message_id=own))


def replies(old: OldProducer, queue: str = "mine", *, count: int) -> list[str]:
    """The message ids of so many replies."""
    found: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        method, properties, _ = old.channel.basic_get(queue, auto_ack=True)
        if method is None or properties is None:
            old.channel.connection.sleep(0.05)
        else:
            found.append(str(properties.message_id))
    return found


def test_a_broker_that_is_restarted_killed_or_cuts_us_off_is_come_back_to(
    own_broker: RabbitMQ, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="onward.gateway")
    held: set[str] = {"kept"}

    def ends(record: RequestRecord) -> Outcome | None:
        return None if record.id in held else Outcome(state=OutcomeState.DONE, reason="done")

    with gateway_at(broker_at(own_broker), tmp_path / "requests.db", ends=ends) as running:
        with OldProducer(own_broker) as old:
            old.channel.queue_declare("mine", durable=True, arguments={"x-queue-type": "quorum"})
            send(old, "kept")
            assert until(lambda: running.requests.find("kept") is not None, timeout=PATIENCE)
            own_broker.cut_connections()
        with OldProducer(own_broker) as old:
            send(old, "after-the-cut")
            assert replies(old, count=1) == ["after-the-cut.reply"]
            own_broker.stop()
        held.clear()  # its answer is ready while there is no broker
        assert until(lambda: running.requests.of("kept").outcome is not None, timeout=PATIENCE)
        own_broker.start()
        with OldProducer(own_broker) as old:
            assert replies(old, count=1) == ["kept.reply"]
            send(old, "before-the-kill")
            assert until(lambda: running.requests.find("before-the-kill") is not None, timeout=PATIENCE)
            own_broker.stop(hard=True)
        own_broker.start()
        with OldProducer(own_broker) as old:
            send(old, "after-the-kill")
            sent = old.send({}, {})
            assert set(replies(old, count=2)) == {"before-the-kill.reply", "after-the-kill.reply"}
            assert old.reply(sent) == {}, "the queues of the first protocol are gone with the broker, and are made again"
    said = caplog.text
    assert "stopped delivering messages" in said and "cannot be reached: Connection refused; trying again" in said
    assert own_broker.password not in said


def test_a_broker_that_falls_silent_is_left_and_come_back_to(
    own_broker: RabbitMQ, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "_HEARTBEAT", 1)
    with gateway_at(broker_at(own_broker), tmp_path / "requests.db"):
        own_broker.daemon().pause()
        try:
            assert until(lambda: "stopped answering" in caplog.text, timeout=PATIENCE)
        finally:
            own_broker.daemon().resume()
        with OldProducer(own_broker) as old:
            sent = old.send({}, {})

            assert old.reply(sent, timeout=PATIENCE) == {}


def test_a_broker_that_is_short_of_memory_gets_its_answers_later(
    own_broker: RabbitMQ, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "_PATIENCE", 1.0)
    held: set[str] = {"all"}

    def ends(record: RequestRecord) -> Outcome | None:
        return None if held else Outcome(state=OutcomeState.DONE, reason="done")

    with OldProducer(own_broker) as old, gateway_at(broker_at(own_broker), tmp_path / "requests.db", ends=ends) as running:
        sent = old.send({}, {})
        assert until(lambda: running.requests.unsettled() != [], timeout=PATIENCE)
        own_broker.control("set_vm_memory_high_watermark", "0.000001")
        held.clear()
        assert until(lambda: "the broker confirmed no message for 1 s" in caplog.text, timeout=PATIENCE)
        own_broker.control("set_vm_memory_high_watermark", "0.4")

        assert old.reply(sent, timeout=PATIENCE) == {}


def test_a_queue_that_is_deleted_under_it_is_made_again(broker: RabbitMQ, vhost: str, tmp_path: Path) -> None:
    with OldProducer(broker, vhost) as old, gateway_at(broker_at(broker, vhost), tmp_path / "requests.db") as running:
        old.channel.queue_declare("mine", durable=True)
        old.channel.queue_delete("onward.requests")

        def there() -> bool:
            with OldProducer(broker, vhost) as other:
                try:
                    return bool(other.channel.queue_declare("onward.requests", passive=True).method.consumer_count)
                except pika.exceptions.ChannelClosedByBroker:
                    return False

        assert until(there, timeout=PATIENCE, pause=0.2)
        send(old, "a")

        assert replies(old, count=1) == ["a.reply"]
        assert running.thread.is_alive()


def test_a_wrong_password_ends_the_start_and_a_broker_that_is_not_there_yet_is_waited_for(own_broker: RabbitMQ, tmp_path: Path) -> None:
    requests = Requests.open(tmp_path / "wrong.db")
    right = broker_at(own_broker)
    parts = GatewayParts(
        broker=replace(right, password="hunter2"),
        settings=GatewaySettings(),
        requests=requests,
        recipes=FakeRecipes(),
        serve=FakeServe(requests),
        clock=SystemClock(),
        server=lambda: None,
    )
    with pytest.raises(NotAllowed, match="refused the login") as caught:
        Gateway(parts).run()
    requests.close()
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"

    own_broker.stop()
    with gateway_at(right, tmp_path / "early.db", wait=False) as running:
        assert not running.ready.wait(1)
        own_broker.start()
        assert running.ready.wait(PATIENCE)


def test_what_is_done_once_takes_what_is_there_and_leaves(broker: RabbitMQ, vhost: str, tmp_path: Path) -> None:
    requests = Requests.open(tmp_path / "requests.db")
    parts = GatewayParts(
        broker=broker_at(broker, vhost),
        settings=GatewaySettings(),
        requests=requests,
        recipes=FakeRecipes(),
        serve=FakeServe(requests),
        clock=SystemClock(),
        server=lambda: None,
    )
    with OldProducer(broker, vhost) as old:
        old.channel.queue_declare("mine", durable=True)
        Gateway(parts).once()  # makes the queues
        for own in ("a", "b", "c"):
            send(old, own)
        Gateway(parts).once()

        assert replies(old, count=3) == ["a.reply", "b.reply", "c.reply"]
        assert requests.outbox.due(now=time.time() + 1e6) == []
    requests.close()
