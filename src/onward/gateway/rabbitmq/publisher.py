"""Publisher: what is in the outbox goes to the broker; what the broker has confirmed is marked as sent.

Persistent, mandatory, confirmed, and with a message id that stays the same. A connection that breaks before the confirm leaves the message
in the outbox: it is sent again, and whoever gets it twice sees the same id twice. Nothing is ever marked as sent that was not confirmed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onward.clock import Clock
from onward.errors import StorageError
from onward.gateway.messages.encoding import ReplyEncoder
from onward.gateway.messages.message_body import MessageBody
from onward.gateway.rabbitmq.connection import Broker
from onward.gateway.rabbitmq.dead_letters import put_aside
from onward.gateway.rabbitmq.large_message import send_large
from onward.gateway.rabbitmq.publish_errors import NO_ROOM, MessageTooLarge, is_too_large, no_confirm, no_queue, not_allowed
from onward.gateway.rabbitmq.queues import DEAD
from onward.model.quantity import format_duration
from onward.model.requests.request import Outgoing, OutgoingKind
from onward.tracker.requests.outbox import Outbox

if TYPE_CHECKING:
    from aio_pika import Message
    from aio_pika.abc import AbstractChannel, AbstractConnection

log = logging.getLogger(__name__)

_BATCH = 50
_LARGE = 1 << 20  # bytes; larger ones are sent piece by piece, over a connection of their own
_LONGEST_NAME = 255  # bytes of a queue's name
_PATIENCE = 30.0  # seconds for a confirm
_LOOK_AGAIN = 2.0  # seconds, if nobody wakes it sooner


class Publisher:
    def __init__(self, broker: Broker, outbox: Outbox, replies: ReplyEncoder, clock: Clock, *, kept: float) -> None:
        self._kept = kept  # seconds that a reply waits for its queue
        self._broker = broker
        self._outbox = outbox
        self._replies = replies
        self._clock = clock
        self.wake = asyncio.Event()
        self._heavy = asyncio.Lock()  # large ones go one by one, each with a connection and a thread
        self._most: int | None = None  # bytes of a message that the broker takes, once it refused one
        self.may = False  # one gateway of several sends, lest all send the same

    async def run(self, connection: AbstractConnection) -> None:
        """Until the connection ends."""
        async with connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
            while True:
                self.wake.clear()
                if not (self.may and await self.send_due(connection, channel)):
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self.wake.wait(), _LOOK_AGAIN)

    async def send_due(self, connection: AbstractConnection, channel: AbstractChannel) -> int:
        """What is due now, or some of it: how many were dealt with."""
        due = await asyncio.to_thread(self._outbox.due, now=self._clock.now(), limit=_BATCH)
        sent = await asyncio.gather(*(self._send(connection, channel, one) for one in due), return_exceptions=True)
        confirmed = [one.id for one, how in zip(due, sent, strict=True) if how is None]
        if confirmed:
            await asyncio.to_thread(self._outbox.sent, confirmed, now=self._clock.now())
        await self._put_off(channel, due, sent)
        for how in sent:
            if isinstance(how, BaseException):
                raise how
        return len(due)

    async def answer(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing) -> None:
        """To somebody who asks and waits: not kept for one who does not."""
        why = await self._send(connection, channel, message)
        if why:
            log.info("nobody waits for the status of request %s: %s", message.request, why)

    async def _put_off(self, channel: AbstractChannel, due: Sequence[Outgoing], sent: Sequence[str | BaseException | None]) -> None:
        for message, how in zip(due, sent, strict=True):
            if not isinstance(how, str):
                continue
            if message.kind is OutgoingKind.REPLY and self._clock.now() - message.made >= self._kept:
                await self._give_up(channel, message, how)
            elif message.kind is OutgoingKind.REPLY:
                log.warning("the reply to request %s waits: %s", message.request, how)
                await asyncio.to_thread(self._outbox.failed, message, how, now=self._clock.now())
            else:
                log.info("a progress message of request %s is dropped: %s", message.request or "?", how)
                await asyncio.to_thread(self._outbox.give_up, message, how)

    async def _give_up(self, channel: AbstractChannel, message: Outgoing, why: str) -> None:
        """On one reply that nobody came for. Its results stay where they are."""
        reason = f"{why}, for {format_duration(self._kept)} since the request ended"
        body = await asyncio.to_thread(self._replies.body, message, most=0)
        properties: dict[str, Any] = {
            "content_type": "application/json",
            "correlation_id": message.correlation_id,
            "message_id": message.id,
        }
        if len(message.reply_to or "") > _LONGEST_NAME:  # which may be why
            reason, queue = f"{reason}: {message.reply_to}", ""
        else:
            queue = message.reply_to or ""
        await put_aside(channel, bytes(body or b""), reason=reason, queue=queue, **properties)
        log.warning("the reply to request %s is put aside: %s", message.request, reason)
        await asyncio.to_thread(self._outbox.give_up, message, f"{reason}; it is in the queue {DEAD}")

    async def _send(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing) -> str | None:
        """None: the broker has it. A sentence: why this one could not be sent. Whatever raises concerns the connection."""
        async with self._heavy if _weight(message) > _LARGE // 2 else contextlib.nullcontext():
            return await self._composed(connection, channel, message)

    async def _composed(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing) -> str | None:
        last = None
        while True:
            try:
                body = await asyncio.to_thread(self._replies.body, message, most=self._most)
            except Exception as error:  # one that we stumble over must not keep the others back
                log.exception("internal error: the reply to request %s cannot be encoded", message.request)
                return f"internal error: {type(error).__name__}: {error}"
            if body is None:
                return "this protocol has no such message"
            try:
                return await self._publish(connection, channel, message, body)
            except MessageTooLarge as error:
                if last is not None and body.size >= last:  # there is nothing left to leave out
                    return str(error)
                last, self._most = body.size, error.most or body.size // 2

    async def _publish(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing, body: MessageBody) -> str | None:
        if body.size <= min(self._most or _LARGE, _LARGE):
            return await _publish(channel, message, bytes(body))
        queue = message.reply_to or ""
        try:
            properties = _message(message, b"").properties
            return await asyncio.to_thread(send_large, self._broker, queue=queue, properties=properties, body=body)
        except StorageError as error:  # a file changed while it was sent: looked at again when it is sent again
            return error.message


def _weight(message: Outgoing) -> int:
    return sum(int(one["size"]) for one in message.payload.get("results") or ())


async def _publish(channel: AbstractChannel, message: Outgoing, body: bytes) -> str | None:
    from aio_pika.exceptions import ChannelClosed, ChannelPreconditionFailed, DeliveryError, PublishError

    queue = message.reply_to or ""
    try:
        await channel.default_exchange.publish(_message(message, body), routing_key=queue, mandatory=True, timeout=_PATIENCE)
    except (TypeError, ValueError, OverflowError, struct.error) as error:  # before it has left us
        return f"it cannot be encoded as a message: {error}"
    except PublishError:
        return no_queue(queue)
    except DeliveryError:
        return NO_ROOM.format(queue=queue[:200])
    except ChannelPreconditionFailed as error:
        raise (MessageTooLarge(str(error)) if is_too_large(str(error)) else error) from error
    except ChannelClosed as error:
        if "ACCESS_REFUSED" in str(error):
            raise not_allowed() from error
        raise
    except TimeoutError as error:
        raise no_confirm(_PATIENCE) from error
    return None


def _message(message: Outgoing, body: bytes) -> Message:
    from aio_pika import DeliveryMode, Message

    return Message(
        body,
        content_type="application/json",
        delivery_mode=DeliveryMode.PERSISTENT,
        correlation_id=message.correlation_id,
        message_id=message.id,
        type=str(message.kind),
    )
