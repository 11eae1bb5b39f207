"""Sender: ask a gateway for trainings, from any program that reaches the broker. Needs aio-pika (`pip install onward[gateway]`).

    sender = onward.Sender("amqps://broker.lab.org/", name="scribe")        # user and password: RABBITMQ_USER, RABBITMQ_PASSWORD
    sent = sender.request("patchwise", {"Image": "https://rodan.lab.org/uploads/page.png"}, {"Patch height": 128})
    answer = sent.wait(told=print)                                          # minutes or days
    answer.save(Path("models"))

    sender.sent("ID").wait()                       # from another process, or after a restart: the answer waits in a queue of its own
    sender.sent("ID").status(); sender.sent("ID").cancel()

Each request has a reply queue to itself, so nobody sees or takes another's answer. The queue is durable, and goes when its answer was
taken, or after a month in which nobody asked for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from onward.errors import Conflict, HostUnreachable, InvalidInput, NotFound, TooMany
from onward.gateway.messages.reply import GatewayReply, reply_from_body
from onward.gateway.messages.v2 import CONTROL, REQUESTS
from onward.gateway.rabbitmq.connection import Broker
from onward.inputs.recipes.request_body import REQUEST_ID
from onward.settings import load_settings

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

T = TypeVar("T")
ProgressCallback = Callable[[Mapping[str, Any]], object]
KeepCallback = Callable[[GatewayReply], object]

_KEPT = 30 * 24 * 3600 * 1000  # milliseconds that an answer nobody asks for is kept
_PATIENCE = 30.0  # seconds for the broker, and for a gateway to report a request's status
_SOON = 5.0  # seconds for one that is asked before somebody waits
_AGAIN = 2.0  # seconds between tries to reach a broker that went away while somebody waits
_ID = re.compile(REQUEST_ID)


class Sender:
    """`url` and what else is left out comes from the settings' `[gateway]`, or from RABBITMQ_HOST, RABBITMQ_USER and RABBITMQ_PASSWORD."""

    def __init__(self, url: str | None = None, *, user: str | None = None, password: str | None = None, name: str = "") -> None:
        self._broker = Broker.of(os.environ, load_settings(os.environ).gateway, url=url, user=user, password=password)
        self.name = name
        self.user = self._broker.user

    def __repr__(self) -> str:
        return f"onward.Sender({self._broker.words!r})"

    def request(
        self,
        recipe: str,
        inputs: Mapping[str, str | Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        resources: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        priority: int = 0,
        id: str | None = None,
    ) -> Sent:
        """Publish it; the broker has it on disk when this returns. `inputs`: addresses, or `{"url", "sha256", "size"}`; `deadline`: unix
        seconds. With an `id` of your own it may be sent again and again: there is one run and one answer for it."""
        own = checked_id(id if id is not None else secrets.token_hex(16))
        request = {
            "id": own,
            "recipe": recipe,
            "inputs": {name: {"url": one} if isinstance(one, str) else dict(one) for name, one in (inputs or {}).items()},
            "settings": dict(settings or {}),
            "resources": dict(resources or {}),
            **({"deadline": deadline} if deadline is not None else {}),
            **({"priority": priority} if priority else {}),
            **({"sender": self.name} if self.name else {}),
        }
        _run(self._publish(REQUESTS, request, reply_to=reply_queue(own)))
        return Sent(self, own)

    def sent(self, id: str) -> Sent:
        """A request that was published before, by whomever."""
        return Sent(self, checked_id(id))

    async def _publish(self, queue: str, body: Mapping[str, Any], *, reply_to: str) -> None:
        async with self.channel() as channel:
            await _declare(channel, reply_to)
            await _publish(channel, queue, body, reply_to=reply_to, user=None if self.name else self.user)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[AbstractChannel]:
        async with self._broker.connected(name=self.name or "onward sender") as connection:
            yield await connection.channel(publisher_confirms=True, on_return_raises=True)

    async def patiently(self, work: Callable[[AbstractChannel], Awaitable[T]]) -> T:
        """Again and again while the broker is away, once it was there."""
        from aio_pika.exceptions import AMQPError, ChannelClosed

        reached = False
        while True:
            try:
                async with self.channel() as channel:
                    reached = True
                    return await work(channel)
            except HostUnreachable:
                if not reached:
                    raise
            except (ChannelClosed, AMQPError, ConnectionError):
                pass
            await asyncio.sleep(_AGAIN)


class _NotKept(Exception):
    """Whatever `keep` raised, so that nobody takes it for the broker's."""


class Sent:
    """One request, by its id."""

    def __init__(self, sender: Sender, id: str) -> None:
        self._sender = sender
        self.id = id

    def __repr__(self) -> str:
        return f"<request {self.id}>"

    def wait(self, *, told: ProgressCallback | None = None, keep: KeepCallback | None = None, timeout: float | None = None) -> GatewayReply:
        """Until it is answered. `told` gets each message of its progress. `keep` gets the answer before the broker may forget it, so that
        an answer that could not be kept is still there to be waited for. A broker that restarts meanwhile is waited for, too."""
        return _run(self._wait(told or (lambda _: None), keep or (lambda _: None), timeout))

    def status(self) -> Mapping[str, Any]:
        """How the gateway says that it stands."""
        return _run(self._status())

    def cancel(self) -> Mapping[str, Any]:
        """Its answer will say that it was cancelled, unless it was over before. How the gateway says that it stands; nothing where none
        is there now, and is told as soon as it is."""
        return _run(self._cancel())

    async def _wait(self, told: ProgressCallback, keep: KeepCallback, timeout: float | None) -> GatewayReply:
        try:
            async with asyncio.timeout(timeout):
                return await self._sender.patiently(lambda channel: self._answered(channel, told, keep))
        except _NotKept as error:
            raise error.__cause__ or error from None
        except TimeoutError:
            raise TooMany(f"request {self.id} was not answered within {timeout:.0f} s", hint="it continues: wait for it again") from None

    async def _answered(self, channel: AbstractChannel, told: ProgressCallback, keep: KeepCallback) -> GatewayReply:
        await channel.set_qos(prefetch_count=1)
        queue = await self._queue(channel)
        if not queue.declaration_result.message_count:
            await self._must_be_to_come(channel)
        async with queue.iterator() as messages:
            async for message in messages:
                body = _body(message)
                if body.get("kind") == "reply":
                    answer = reply_from_body(body)
                    try:
                        await asyncio.to_thread(keep, answer)  # it may fetch results; the broker must hear from us meanwhile
                    except Exception as error:
                        raise _NotKept from error
                    await message.ack()
                    break
                await message.ack()
                if body.get("kind") == "error":
                    raise Conflict(str(body.get("reason")), hint=str(body.get("next") or ""))
                told(body)
            else:
                raise ConnectionError("the connection to the broker broke")
        await queue.delete(if_unused=False, if_empty=False)
        return answer

    async def _queue(self, channel: AbstractChannel) -> AbstractQueue:
        from aio_pika.exceptions import ChannelNotFoundEntity

        try:
            return await channel.get_queue(reply_queue(self.id))
        except ChannelNotFoundEntity:
            hint = "it was already taken, or the request was sent with another reply queue; the run's page has it"
            raise NotFound(f"the broker has no reply to {self.id}, and none will come", hint=hint) from None

    async def _must_be_to_come(self, channel: AbstractChannel) -> None:
        """One whose answer was taken, and that was sent again, is not answered again: nobody should wait for it for ever."""
        try:
            state = await self._asked(channel, "status", patience=_SOON)
        except (NotFound, HostUnreachable):
            return
        for _ in range(10 if state.get("outcome") else 0):
            await asyncio.sleep(_SOON / 10)
            if (await self._queue(channel)).declaration_result.message_count:
                return
        if state.get("outcome"):
            words = f"request {self.id} is over, and its reply was already taken: {state['outcome'].get('reason', '')}"
            raise NotFound(words, hint="the run's page has the results; to train again, send it with another id")

    async def _status(self) -> Mapping[str, Any]:
        async with self._sender.channel() as channel:
            return await self._asked(channel, "status", patience=_PATIENCE)

    async def _asked(self, channel: AbstractChannel, kind: str, *, patience: float) -> Mapping[str, Any]:
        queue = await channel.declare_queue(exclusive=True)
        await _publish(channel, CONTROL, {"kind": kind, "id": self.id}, reply_to=queue.name, user=self._sender.user)
        try:
            async with asyncio.timeout(patience), queue.iterator() as messages:
                async for message in messages:
                    await message.ack()
                    return _body(message)
        except TimeoutError:
            pass
        raise HostUnreachable(f"no gateway answered about request {self.id} within {patience:.0f} s", hint="is `onward gateway` running?")

    async def _cancel(self) -> Mapping[str, Any]:
        async with self._sender.channel() as channel:
            try:
                return await self._asked(channel, "cancel", patience=_SOON)
            except HostUnreachable:
                return {}


def reply_queue(id: str) -> str:
    return f"onward.reply.{id}"


def checked_id(id: str) -> str:
    if not _ID.fullmatch(id):
        raise InvalidInput(f"{id[:100]!r} is not a valid request id", hint="1 to 128 letters, digits, dots, colons, dashes and underscores")
    return id


async def _declare(channel: AbstractChannel, name: str) -> None:
    """Of its progress the newest hundred messages are kept. The answer is the last of all, so it is never among those that go."""
    await channel.declare_queue(name, durable=True, arguments={"x-expires": _KEPT, "x-max-length": 100})


async def _publish(channel: AbstractChannel, queue: str, body: Mapping[str, Any], *, reply_to: str, user: str | None = None) -> None:
    """`user`: who asks, for whom the broker vouches."""
    from aio_pika import DeliveryMode, Message
    from aio_pika.exceptions import DeliveryError

    message = Message(
        json.dumps(body).encode(),
        content_type="application/json",
        delivery_mode=DeliveryMode.PERSISTENT,
        reply_to=reply_to,
        message_id=str(body["id"]),
        correlation_id=str(body["id"]),
        user_id=user,
    )
    try:
        await channel.default_exchange.publish(message, routing_key=queue, mandatory=True, timeout=_PATIENCE)
    except DeliveryError as error:
        raise NotFound(
            f"the broker has no queue {queue}, or it is full: {error}", hint="`onward gateway declare` creates the queues"
        ) from error


def _body(message: AbstractIncomingMessage) -> dict[str, Any]:
    """What cannot be read says nothing."""
    try:
        body = json.loads(message.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _run(work: Coroutine[Any, Any, T]) -> T:
    """To its end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
