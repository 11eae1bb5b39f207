"""Publisher: what is in the outbox goes to the broker; what the broker has confirmed is marked as sent.

Persistent, mandatory, confirmed, and with a message id that stays the same. A connection that breaks before the confirm leaves the message
in the outbox: it is sent again, and whoever gets it twice sees the same id twice. Nothing is ever marked as sent that was not confirmed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from onward.clock import Clock
from onward.errors import HostUnreachable, NotAllowed
from onward.gateway.messages.encoding import ReplyEncoder
from onward.model.requests.request import Outgoing, OutgoingKind
from onward.tracker.requests.outbox import Outbox

if TYPE_CHECKING:
    from aio_pika import Message
    from aio_pika.abc import AbstractChannel, AbstractConnection

log = logging.getLogger(__name__)

_BATCH = 50
_LARGE = 1 << 20  # bytes; one that the broker finds too large ends its channel, so the large ones have one each
_PATIENCE = 30.0  # seconds for a confirm
_LOOK_AGAIN = 2.0  # seconds, if nobody wakes it sooner


class Publisher:
    def __init__(self, outbox: Outbox, replies: ReplyEncoder, clock: Clock) -> None:
        self._outbox = outbox
        self._replies = replies
        self._clock = clock
        self.wake = asyncio.Event()
        self._heavy = asyncio.Lock()  # large ones go one by one: each is in memory several times over
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
        await self._put_off(due, sent)
        for how in sent:
            if isinstance(how, BaseException):
                raise how
        return len(due)

    async def answer(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing) -> None:
        """To somebody who asks and waits: not kept for one who does not."""
        why = await self._send(connection, channel, message)
        if why:
            log.info("nobody waits for the status of request %s: %s", message.request, why)

    async def _put_off(self, due: Sequence[Outgoing], sent: Sequence[str | BaseException | None]) -> None:
        for message, how in zip(due, sent, strict=True):
            if not isinstance(how, str):
                continue
            if message.kind is OutgoingKind.REPLY:
                log.warning("the reply to request %s waits: %s", message.request, how)
                await asyncio.to_thread(self._outbox.failed, message, how, now=self._clock.now())
            else:
                log.info("a progress message of request %s is dropped: %s", message.request or "?", how)
                await asyncio.to_thread(self._outbox.give_up, message, how)

    async def _send(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing) -> str | None:
        """None: the broker has it. A sentence: why this one could not be sent. Whatever raises concerns the connection."""
        async with self._heavy if _weight(message) > _LARGE else contextlib.nullcontext():
            return await self._composed(connection, channel, message)

    async def _composed(self, connection: AbstractConnection, channel: AbstractChannel, message: Outgoing) -> str | None:
        try:
            body = await asyncio.to_thread(self._replies.body, message)
        except Exception as error:  # one that we stumble over must not keep the others back
            log.exception("internal error: the reply to request %s cannot be encoded", message.request)
            return f"internal error: {type(error).__name__}: {error}"
        if body is None:
            return "this protocol has no such message"
        if len(body) <= _LARGE:
            return await _publish(channel, message, body)
        async with _channel_for(connection) as own:
            why = await _publish(own, message, body)
        if why != _TOO_LARGE:
            return why
        light = await asyncio.to_thread(self._replies.body, message, light=True)
        return await _publish(channel, message, light or b"{}")


_TOO_LARGE = "the message is too large for the broker"


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
        return f"the broker has no queue {queue[:200]!r}"
    except DeliveryError:
        return f"the queue {queue[:200]!r} accepts no more messages"
    except ChannelPreconditionFailed as error:
        if "larger than" in str(error) and len(body) > _LARGE:
            return _TOO_LARGE
        raise
    except ChannelClosed as error:
        if "ACCESS_REFUSED" in str(error):
            hint = "rabbitmqctl set_permissions: the gateway's user must be able to write to amq.default"
            raise NotAllowed("the gateway's user may not send replies", hint=hint) from error
        raise
    except TimeoutError as error:
        raise HostUnreachable(
            f"the broker confirmed no message for {_PATIENCE:.0f} s",
            hint="out of memory or disk? `rabbitmqctl status` shows alarms",
        ) from error
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


@asynccontextmanager
async def _channel_for(connection: AbstractConnection) -> AsyncIterator[AbstractChannel]:
    """One that may be ended by what is sent on it."""
    from aio_pika.exceptions import AMQPError

    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    try:
        yield channel
    finally:
        with contextlib.suppress(AMQPError):
            await channel.close()
