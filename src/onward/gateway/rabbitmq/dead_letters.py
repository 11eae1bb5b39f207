"""Dead letters: what can be neither served nor sent, each with its reason in a header, in a queue that people look through.

To look is to get every message without acknowledging it, and to end the channel: the broker then has them again. It counts that as a
delivery, and RabbitMQ 4 deletes a message after 20 of them. So one that was looked at often is replaced by a copy, which begins at zero.
A crash between copy and acknowledgement leaves both: they have one id, and what is done to a letter is done to its copies too.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onward.errors import Conflict, HostUnreachable
from onward.gateway.rabbitmq.publish_errors import NO_ROOM, no_queue
from onward.gateway.rabbitmq.queues import DEAD

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
    from pamqp.common import FieldValue

_KEPT = 1 << 20  # bytes of a message
_PATIENCE = 30.0  # seconds for a confirm
_LOOKS = 10  # at one message, before it is replaced by a copy


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    id: str  # the same for the same message
    queue: str  # that it came by, or was for
    reason: str
    at: float | None  # when it was put aside; None: by an older version
    size: int  # bytes, before it was cut
    kept: int  # bytes of it that are here
    message_id: str | None

    @property
    def cut(self) -> bool:
        return self.kept < self.size


async def put_aside(
    channel: AbstractChannel,
    body: bytes,
    *,
    reason: str,
    queue: str,
    size: int | None = None,
    at: float | None = None,
    **properties: Any,
) -> None:
    """Confirmed by the broker. Of a huge one the beginning must do. `queue`: the one that it came by, or was for."""
    from aio_pika import DeliveryMode, Message

    headers: dict[str, FieldValue] = {
        "x-onward-reason": reason[:1000],
        "x-onward-queue": queue,
        "x-onward-size": len(body) if size is None else size,
        "x-onward-at": int(time.time() if at is None else at),
    }
    copy = Message(body[:_KEPT], delivery_mode=DeliveryMode.PERSISTENT, headers=headers, **properties)
    dead = await channel.get_exchange(DEAD, ensure=False)
    await dead.publish(copy, routing_key=queue, mandatory=True, timeout=_PATIENCE)


async def count_dead(connection: AbstractConnection) -> int:
    """On a channel of its own: a queue that is gone closes it."""
    async with connection.channel() as channel:
        queue = await channel.declare_queue(DEAD, passive=True)
        return int(queue.declaration_result.message_count or 0)


async def dead_letters(
    connection: AbstractConnection, *, limit: int | None = None
) -> AsyncIterator[tuple[DeadLetter, AbstractIncomingMessage, AbstractChannel]]:
    """Oldest first, no more than there were at the beginning. What is not acknowledged by the end stays."""
    count = await count_dead(connection)
    async with connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
        queue = await channel.get_queue(DEAD, ensure=False)
        for _ in range(count if limit is None else min(limit, count)):
            message = await queue.get(fail=False)
            if message is None:
                return
            letter = letter_of(message)
            yield letter, message, channel
            if not message.processed and _looks(message) >= _LOOKS:
                await _renew(channel, letter, message)


async def send_back(channel: AbstractChannel, letter: DeadLetter, message: AbstractIncomingMessage) -> None:
    """To the queue that it came by, or was for; confirmed. Conflict where that cannot be."""
    from aio_pika import DeliveryMode, Message
    from aio_pika.exceptions import DeliveryError, PublishError

    if letter.cut:
        hint = f"only its first {letter.kept} bytes were kept; `onward gateway forget {letter.id}` removes it"
        raise Conflict(f"dead letter {letter.id} of {letter.size} bytes cannot be sent again", hint=hint)
    copy = Message(message.body, delivery_mode=DeliveryMode.PERSISTENT, **_properties(message))
    try:
        await channel.default_exchange.publish(copy, routing_key=letter.queue, mandatory=True, timeout=_PATIENCE)
    except PublishError as error:
        raise Conflict(f"dead letter {letter.id}: {no_queue(letter.queue)}", hint="it stays where it is") from error
    except DeliveryError as error:
        raise Conflict(f"dead letter {letter.id}: {NO_ROOM.format(queue=letter.queue)}", hint="it stays where it is") from error
    except TimeoutError as error:
        raise HostUnreachable(f"the broker did not confirm dead letter {letter.id}", hint="it stays where it is; try again") from error


def letter_of(message: AbstractIncomingMessage) -> DeadLetter:
    """One that the broker itself put aside has no headers of ours, but says where it was and why."""
    headers = message.headers
    died = _first_death(headers)
    queue = str(headers.get("x-onward-queue", died.get("queue", message.routing_key)) or "")
    size, at = headers.get("x-onward-size"), headers.get("x-onward-at")
    if at is None and hasattr(died.get("time"), "timestamp"):
        at = died["time"].timestamp()
    return DeadLetter(
        id=_fingerprint(queue, message),
        queue=queue,
        reason=str(headers.get("x-onward-reason") or f"the broker put it aside: {died.get('reason', 'it does not say why')}"),
        at=float(at) if isinstance(at, int | float) else None,
        size=size if isinstance(size, int) else message.body_size,
        kept=message.body_size,
        message_id=message.message_id,
    )


def _first_death(headers: Any) -> dict[str, Any]:
    deaths = headers.get("x-death")
    return deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}


def _fingerprint(queue: str, message: AbstractIncomingMessage) -> str:
    said = json.dumps([queue, message.message_id, message.correlation_id, message.reply_to])
    return hashlib.sha256(said.encode(errors="replace") + message.body).hexdigest()[:12]


def _looks(message: AbstractIncomingMessage) -> int:
    count = message.headers.get("x-delivery-count", 0)
    return count if isinstance(count, int) else 0


async def _renew(channel: AbstractChannel, letter: DeadLetter, message: AbstractIncomingMessage) -> None:
    own = _properties(message)
    await put_aside(channel, message.body, reason=letter.reason, queue=letter.queue, size=letter.size, at=letter.at, **own)
    await message.ack()


def _properties(message: AbstractIncomingMessage) -> dict[str, Any]:
    names = ("content_type", "content_encoding", "reply_to", "correlation_id", "message_id")
    return {name: getattr(message, name) for name in names}
