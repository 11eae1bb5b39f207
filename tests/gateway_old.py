"""An application as the first gateway knew it: pika, version 1 messages, queues that no restart of the broker outlives."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from beds.rabbitmq import USER, RabbitMQ

JOBS = "hpc-jobs"
RESULTS = "hpc-results"


class OldProducer:
    """Connects plain, with confirms on; publishes to the default exchange; waits on the one queue that all applications share."""

    def __init__(self, server: RabbitMQ, vhost: str = "/") -> None:
        self.where = (server, vhost)
        login = pika.PlainCredentials(USER, server.password)
        where = pika.ConnectionParameters(host="127.0.0.1", port=server.ports.plain, virtual_host=vhost, credentials=login)
        self._connection = pika.BlockingConnection(where)
        self.channel: BlockingChannel = self._connection.channel()
        self.channel.queue_declare(queue=JOBS)
        self.channel.queue_declare(queue=RESULTS)
        self.channel.confirm_delivery()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(AMQPError):  # the broker may be gone
            self._connection.close()

    def send(self, inputs: Mapping[str, str], settings: Mapping[str, object], *, correlation_id: str | None = None) -> str:
        """Publish one job; its correlation id."""
        return self.send_body(json.dumps({"inputs": dict(inputs), "settings": dict(settings)}).encode(), correlation_id=correlation_id)

    def send_body(self, body: bytes, *, correlation_id: str | None = None) -> str:
        own = correlation_id or str(uuid.uuid4())
        properties = pika.BasicProperties(reply_to=RESULTS, correlation_id=own)
        self.channel.basic_publish(exchange="", routing_key=JOBS, body=body, properties=properties)
        return own

    def reply(self, correlation_id: str, *, timeout: float = 30) -> dict[str, Any]:
        """The answer with that correlation id; those of others go back to the queue, as the old code did."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            others: list[int] = []
            found = self._look(correlation_id, others)
            for tag in others:
                self.channel.basic_nack(tag, requeue=True)
            if found is not None:
                return found
            self._connection.sleep(0.05)
        raise TimeoutError(f"no reply to {correlation_id} within {timeout:.0f} s")

    def _look(self, correlation_id: str, others: list[int]) -> dict[str, Any] | None:
        while True:
            method, properties, body = self.channel.basic_get(RESULTS)
            if method is None or properties is None or body is None:
                return None
            if properties.correlation_id == correlation_id:
                self.channel.basic_ack(method.delivery_tag or 0)
                answer: dict[str, Any] = json.loads(body)
                return answer
            others.append(method.delivery_tag or 0)

    def silence(self, *, seconds: float = 0.5) -> bool:
        """Whether no further reply of anyone comes."""
        self._connection.sleep(seconds)
        method, _, _ = self.channel.basic_get(RESULTS)
        if method is not None:
            self.channel.basic_nack(method.delivery_tag or 0, requeue=True)
        return method is None
