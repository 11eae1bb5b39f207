"""The queues of the gateway: made where they are missing, looked at where they are there.

onward.requests, onward.control     durable quorum queues; what is delivered too often, and never acknowledged, goes to
onward.dead                         an exchange, and behind it a queue of the same name: what was put aside, each with its reason
hpc-jobs, hpc-results               of the first protocol, as its applications declare them: gone when the broker stops
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onward.errors import Conflict, NotAllowed, OnwardError
from onward.gateway.messages.v2 import CONTROL, REQUESTS
from onward.model.requests.gateway_settings import GatewaySettings

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

DEAD = "onward.dead"
_DELIVERIES = 20  # of a message that is never acknowledged, before it goes to the dead: a gateway that is killed now and then is no reason
_MOST_DEAD = 100_000  # then the oldest go
_SETTLE = 1.0  # seconds until RabbitMQ 3.10 has written down which quorum queues there are: killed sooner, one of them never answers again


@dataclass(frozen=True, kw_only=True)
class QueueSpec:
    name: str
    durable: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class QueueCheck:
    """What was done about one queue, in a line; `odd`: it is there, but not as we would have made it."""

    words: str
    made: bool = False
    odd: bool = False


def queues(settings: GatewaySettings) -> list[QueueSpec]:
    """All that the gateway needs, the last resort first."""
    quorum = {
        "x-queue-type": "quorum",
        "x-delivery-limit": _DELIVERIES,
        "x-dead-letter-exchange": DEAD,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    old = settings.v1
    return [
        QueueSpec(name=DEAD, arguments={"x-queue-type": "quorum", "x-max-length": _MOST_DEAD}),
        QueueSpec(name=REQUESTS, arguments=quorum),
        QueueSpec(name=CONTROL, arguments=quorum),
        *([QueueSpec(name=name, durable=False) for name in (old.jobs, old.results)] if old.enabled else []),
    ]


async def ensure_queues(connection: AbstractConnection, settings: GatewaySettings) -> list[QueueCheck]:
    """Ensure that all exist. One that differs is used as it is, and reported."""
    found = [await _exchange(connection)]
    for spec in queues(settings):
        found.append(await _queue(connection, spec))
        if spec.name == DEAD:
            await _bind(connection)
    if any(one.made for one in found):
        await asyncio.sleep(_SETTLE)
    return found


async def _queue(connection: AbstractConnection, spec: QueueSpec) -> QueueCheck:
    """A declaration that fails closes its channel, so each has its own."""
    from aio_pika.exceptions import ChannelClosed, ChannelNotFoundEntity

    there = True
    try:
        async with connection.channel() as channel:
            await channel.declare_queue(spec.name, passive=True)
    except ChannelNotFoundEntity:
        there = False
    except ChannelClosed as error:
        raise _told(error, f"the queue {spec.name}") from error
    try:
        async with connection.channel() as channel:
            await channel.declare_queue(spec.name, durable=spec.durable, arguments=dict(spec.arguments))
    except ChannelClosed as error:
        if not there:
            raise _told(error, f"the queue {spec.name}") from error
        return QueueCheck(words=f"queue {spec.name}: exists, but not as Onward declares it: {_said(error)}", odd=True)
    return QueueCheck(words=f"queue {spec.name}: {'exists' if there else 'made'}", made=not there)


async def _exchange(connection: AbstractConnection) -> QueueCheck:
    from aio_pika.exceptions import ChannelClosed

    try:
        async with connection.channel() as channel:
            await channel.declare_exchange(DEAD, "fanout", durable=True)
    except ChannelClosed as error:
        raise _told(error, f"the exchange {DEAD}") from error
    return QueueCheck(words=f"exchange {DEAD}: exists")


async def _bind(connection: AbstractConnection) -> None:
    from aio_pika.exceptions import ChannelClosed

    try:
        async with connection.channel() as channel:
            queue = await channel.get_queue(DEAD, ensure=False)
            await queue.bind(DEAD)
    except ChannelClosed as error:
        raise _told(error, f"the exchange {DEAD}") from error


def _told(error: BaseException, what: str) -> OnwardError:
    said = _said(error)
    if "ACCESS_REFUSED" in said:
        hint = "rabbitmqctl set_permissions -p VHOST USER '^(onward|hpc-).*' '.*' '.*', or have its owner run `onward gateway declare`"
        return NotAllowed(f"{what} cannot be created or seen by this user: {said}", hint=hint)
    if "RESOURCE_LOCKED" in said:
        return Conflict(f"{what} is exclusive to another connection: {said}", hint="close it, or declare the queue without exclusive")
    hint = "rabbitmqctl list_queues name durable arguments lists the queues; after rabbitmqctl delete_queue NAME Onward can create its own"
    return Conflict(f"{what} cannot be used: {said}", hint=hint)


def _said(error: BaseException) -> str:
    return " ".join(str(part) for part in error.args) or str(error)
