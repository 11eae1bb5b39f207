"""What an operator does about dead letters, beside a running gateway: list them, send them again, forget them.

A reply that nobody came for has its letter in the broker, without its results, and stays in the store, with them. So it is sent again from
the store. Each act first does what it says and then takes the letter out: killed in between, it can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onward.errors import Conflict, NotFound
from onward.gateway.rabbitmq.connection import Broker
from onward.gateway.rabbitmq.dead_letters import DeadLetter, count_dead, dead_letters, send_back
from onward.tracker.requests.store import Requests

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage


@dataclass(frozen=True, kw_only=True)
class DeadLetterList:
    letters: Sequence[DeadLetter]
    count: int  # in the queue, of which these are the oldest


@dataclass(kw_only=True)
class DeadLetterResult:
    done: list[DeadLetter] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class DeadLetterActs:
    def __init__(self, broker: Broker, requests: Requests | None, *, now: float) -> None:
        self._broker = broker
        self._requests = requests  # None: no gateway has a store here
        self._now = now

    async def list(self, *, limit: int) -> DeadLetterList:
        found: dict[str, DeadLetter] = {}
        async with self._broker.connected(name="onward gateway dead") as connection:
            count = await count_dead(connection)
            async for letter, _, _ in dead_letters(connection, limit=limit):
                found.setdefault(letter.id, letter)
        return DeadLetterList(letters=list(found.values()), count=count)

    async def retry(self, id: str | None) -> DeadLetterResult:
        """None: all. A letter that cannot be sent stays, and keeps no other one back."""
        sent: set[str] = set()
        result = DeadLetterResult()
        async with self._broker.connected(name="onward gateway retry") as connection:
            async for letter, message, channel in dead_letters(connection):
                if id is not None and letter.id != id:
                    continue
                try:
                    if letter.id not in sent:
                        await self._send(channel, letter, message)
                        result.done.append(letter)
                    sent.add(letter.id)
                    await message.ack()
                except Conflict as error:
                    result.problems.append(f"{error.message}: {error.hint}")
        return _found(result, id)

    async def forget(self, id: str) -> DeadLetterResult:
        result = DeadLetterResult()
        async with self._broker.connected(name="onward gateway forget") as connection:
            async for letter, message, _ in dead_letters(connection):
                if letter.id == id:
                    if self._requests is not None and letter.message_id:
                        self._requests.outbox.dismiss(letter.message_id)
                    await message.ack()
                    result.done = [letter]
        return _found(result, id)

    async def _send(self, channel: AbstractChannel, letter: DeadLetter, message: AbstractIncomingMessage) -> None:
        if self._requests is None or not self._requests.outbox.again(letter.message_id or "", now=self._now):
            await send_back(channel, letter, message)


def _found(result: DeadLetterResult, id: str | None) -> DeadLetterResult:
    if id is not None and not result.done and not result.problems:
        hint = "`onward gateway dead` lists them; one that somebody else looks at is away for a moment"
        raise NotFound(f"there is no dead letter {id[:100]!r}", hint=hint)
    return result
