"""The broker of the test beds: what a kill −9 leaves, and what a restart does."""

from __future__ import annotations

import time

import pika

from beds.rabbitmq import RabbitMQ
from tests.gateway_old import OldProducer


def test_a_killed_broker_comes_back_with_what_is_durable_and_confirmed(own_broker: RabbitMQ) -> None:
    with OldProducer(own_broker) as old:
        old.channel.queue_declare("kept", durable=True, arguments={"x-queue-type": "quorum"})
        old.channel.basic_publish("", "kept", b"confirmed", pika.BasicProperties(delivery_mode=2))
        old.send({}, {})
        time.sleep(1)  # 3.10 writes down within half a second which quorum queues there are: one younger than that never finds a leader
        own_broker.stop(hard=True)
    own_broker.start()
    with OldProducer(own_broker) as old:
        kept = old.channel.basic_get("kept", auto_ack=True)
        lost = old.channel.basic_get("hpc-jobs", auto_ack=True)

    assert [str(message[2]) for message in (kept, lost)] == [str(b"confirmed"), "None"]


def test_virtual_hosts_see_nothing_of_each_other(broker: RabbitMQ, vhost: str) -> None:
    broker.add_vhost("another")
    with OldProducer(broker, vhost) as one, OldProducer(broker, "another") as other:
        one.send({}, {})

        assert other.channel.basic_get("hpc-jobs", auto_ack=True)[0] is None
        assert one.channel.basic_get("hpc-jobs", auto_ack=True)[0] is not None
