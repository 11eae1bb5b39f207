"""The broker of the test beds: what a kill −9 leaves, and what a restart does."""

from __future__ import annotations

import time

import pika
import pika.exceptions

from beds.rabbitmq import RabbitMQ
from tests.gateway_old import OldProducer


def test_a_killed_broker_comes_back_with_what_is_durable_and_confirmed(own_broker: RabbitMQ) -> None:
    with OldProducer(own_broker) as old:
        old.channel.queue_declare("kept", durable=True, arguments={"x-queue-type": "quorum"})
        old.channel.basic_publish("", "kept", b"confirmed", pika.BasicProperties(delivery_mode=2))
        old.send({}, {})
        time.sleep(2)  # 3.10 writes down within half a second which quorum queues there are: one younger than that never finds a leader
        own_broker.stop(hard=True)
    own_broker.start()
    assert [first_in(own_broker, queue) for queue in ("kept", "hpc-jobs")] == [b"confirmed", None]


def first_in(broker: RabbitMQ, queue: str) -> object:
    """A quorum queue of a broker that has just come back has no leader for a while: until then the broker closes the connection."""
    give_up = time.monotonic() + 60
    while True:
        try:
            with OldProducer(broker) as old:
                return old.channel.basic_get(queue, auto_ack=True)[2]
        except pika.exceptions.ConnectionClosedByBroker:
            if time.monotonic() > give_up:
                raise


def test_virtual_hosts_see_nothing_of_each_other(broker: RabbitMQ, vhost: str) -> None:
    broker.add_vhost("another")
    with OldProducer(broker, vhost) as one, OldProducer(broker, "another") as other:
        one.send({}, {})

        assert other.channel.basic_get("hpc-jobs", auto_ack=True)[0] is None
        assert one.channel.basic_get("hpc-jobs", auto_ack=True)[0] is not None
