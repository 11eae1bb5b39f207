"""Dead letters: what can be neither served nor sent, each with its reason in a header, in a queue that people look through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onward.gateway.rabbitmq.queues import DEAD

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

_KEPT = 1 << 20  # bytes of a message


async def put_aside(channel: AbstractChannel, body: bytes, *, reason: str, queue: str, **properties: Any) -> None:
    """Confirmed by the broker. Of a huge one the beginning must do. `queue`: the one that it came by, or was for."""
    from aio_pika import DeliveryMode, Message

    copy = Message(
        body[:_KEPT],
        delivery_mode=DeliveryMode.PERSISTENT,
        headers={"x-onward-reason": reason[:1000], "x-onward-queue": queue, "x-onward-size": len(body)},
        **properties,
    )
    dead = await channel.get_exchange(DEAD, ensure=False)
    await dead.publish(copy, routing_key=queue, mandatory=True, timeout=30)


async def count_dead(connection: AbstractConnection) -> int:
    """On a channel of its own: a queue that is gone closes it."""
    async with connection.channel() as channel:
        queue = await channel.declare_queue(DEAD, passive=True)
        return int(queue.declaration_result.message_count or 0)
