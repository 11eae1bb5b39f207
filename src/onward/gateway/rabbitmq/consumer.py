"""Consumer: messages come, are stored by the intake, and are acknowledged; what is not a request is put aside with its reason at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from onward.errors import HostUnreachable, OnwardError
from onward.gateway.intake import InboundQueue, Intake, IntakeDecision
from onward.gateway.messages.incoming import Incoming
from onward.gateway.messages.v2 import CONTROL, REQUESTS
from onward.gateway.rabbitmq.dead_letters import put_aside
from onward.gateway.rabbitmq.publisher import Publisher
from onward.gateway.rabbitmq.unreadable_messages import MARK
from onward.model.requests.gateway_settings import GatewaySettings
from onward.model.storable_text import is_plain

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage

log = logging.getLogger(__name__)

_PREFETCH = 16  # messages in our hands; the broker's largest has 128 MiB
_PAUSE = (0.5, 1.0, 2.0, 5.0)  # seconds between tries to store


@dataclass(frozen=True)
class Arrival:
    door: InboundQueue
    message: AbstractIncomingMessage


class Consumer:
    def __init__(self, intake: Intake, publisher: Publisher, settings: GatewaySettings, *, news: Callable[[], None]) -> None:
        self._intake = intake
        self._publisher = publisher
        self._settings = settings
        self._news = news

    @property
    def doors(self) -> dict[InboundQueue, str]:
        old = {InboundQueue.V1: self._settings.v1.jobs} if self._settings.v1.enabled else {}
        return {InboundQueue.REQUESTS: REQUESTS, InboundQueue.CONTROL: CONTROL, **old}

    async def run(self, connection: AbstractConnection) -> None:
        """Until the connection ends. What was not acknowledged by then comes again."""
        arrivals: asyncio.Queue[Arrival | None] = asyncio.Queue()
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        channel.close_callbacks.add(lambda *_: arrivals.put_nowait(None))
        (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(lambda *_: arrivals.put_nowait(None))
        await channel.set_qos(prefetch_count=_PREFETCH)
        for door, name in self.doors.items():
            queue = await channel.get_queue(name, ensure=False)
            await queue.consume(partial(_arrive, arrivals, door))
        while batch := await _batch(arrivals):
            await self._take(connection, channel, batch)
        raise HostUnreachable("the broker stopped delivering messages", hint="a queue was deleted, or the broker is shutting down")

    async def drain(self, connection: AbstractConnection) -> None:
        """Take what is there now, and no more."""
        async with connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
            for door, name in self.doors.items():
                queue = await channel.get_queue(name, ensure=False)
                while message := await queue.get(fail=False):
                    await self._take(connection, channel, [Arrival(door, message)])

    async def _take(self, connection: AbstractConnection, channel: AbstractChannel, batch: list[Arrival]) -> None:
        done = await self._stored(batch)
        for arrival, what in zip(batch, done, strict=True):
            if what.aside:
                await _put_aside(channel, arrival, what.aside)
            if what.answer:
                await self._publisher.answer(connection, channel, what.answer)
            await arrival.message.ack()
        if any(what.news for what in done):
            self._publisher.wake.set()
            self._news()

    async def _stored(self, batch: list[Arrival]) -> list[IntakeDecision]:
        """A store that does not answer is waited for: the broker keeps what is not acknowledged, and sends no more than our hands hold."""
        given = [(one.door, incoming_of(one.message)) for one in batch]
        tries = 0
        while True:
            try:
                return await asyncio.to_thread(self._intake.take, given)
            except OnwardError as error:
                log.warning("%d messages wait: %s%s", len(batch), error.message, f" → {error.hint}" if error.hint and not tries else "")
            except Exception as error:
                if len(batch) > 1:  # one of them cannot be dealt with: which?
                    return [done for one in batch for done in await self._stored([one])]
                log.exception("internal error: a message is put aside")
                return [IntakeDecision(aside=f"internal error: {type(error).__name__}: {error}")]
            await asyncio.sleep(_PAUSE[min(tries, len(_PAUSE) - 1)])
            tries += 1


async def _arrive(arrivals: asyncio.Queue[Arrival | None], door: InboundQueue, message: AbstractIncomingMessage) -> None:
    arrivals.put_nowait(Arrival(door, message))


async def _batch(arrivals: asyncio.Queue[Arrival | None]) -> list[Arrival]:
    """What is there, at least one; none when there will be no more."""
    found = [await arrivals.get()]
    while not arrivals.empty():
        found.append(arrivals.get_nowait())
    return [] if None in found else [one for one in found if one is not None]


def incoming_of(message: AbstractIncomingMessage) -> Incoming:
    names = ("reply_to", "correlation_id", "message_id", "user_id", "content_encoding")
    texts = {name: getattr(message, name) for name in names}
    odd = next((name for name, text in texts.items() if text and not is_plain(text)), "")
    if odd or message.headers.get(MARK):
        return Incoming(body=message.body, unreadable=f"NUL in {odd}" if odd else str(message.headers[MARK]))
    return Incoming(body=message.body, **texts)


async def _put_aside(channel: AbstractChannel, arrival: Arrival, reason: str) -> None:
    """Before the broker may forget it."""
    message = arrival.message
    await put_aside(
        channel,
        message.body,
        reason=reason,
        queue=message.routing_key or "",
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        reply_to=message.reply_to,
        correlation_id=message.correlation_id,
        message_id=message.message_id,
    )
