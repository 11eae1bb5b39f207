"""Gateway: messages in, requests served, answers out, until it is told to stop. A broker that goes away is waited for.

    the loop     connect → queues → consumer and publisher, until the connection breaks → say why, wait, connect again
    a thread     Serve.step(), which submits runs, follows them and settles requests: it may take its time, and needs no broker

Killed at any point, nothing is lost and nothing done twice: what is not stored was not acknowledged, and what is stored is gone on with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from onward.clock import Clock
from onward.errors import HostUnreachable, OnwardError
from onward.gateway.health import GatewayHealth
from onward.gateway.intake import Intake
from onward.gateway.messages.encoding import ReplyEncoder
from onward.gateway.messages.packed_results import ResultPacker
from onward.gateway.rabbitmq.connection import Broker
from onward.gateway.rabbitmq.consumer import Consumer
from onward.gateway.rabbitmq.dead_letters import count_dead
from onward.gateway.rabbitmq.lease import take_lease
from onward.gateway.rabbitmq.publisher import Publisher
from onward.gateway.rabbitmq.queues import ensure_queues
from onward.model.requests.gateway_settings import GatewaySettings
from onward.operations.requests.context import RecipeLookup
from onward.operations.requests.service import ServiceStep
from onward.tracker.requests.store import Requests

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

log = logging.getLogger(__name__)

_MIB = 1 << 20
_AGAIN = (0.5, 1.0, 2.0, 5.0, 10.0)  # seconds between tries to reach the broker
_STEP, _IDLE = 0.5, 5.0  # seconds between looks at open requests, and where there are none
_AFTER_A_FAULT = 5.0
_COUNT = 10.0  # seconds between looks at the number of dead letters
_GRACE = 30.0  # seconds for a step under way


class Serves(Protocol):
    def step(self) -> ServiceStep: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class GatewayParts:
    broker: Broker
    settings: GatewaySettings
    requests: Requests
    recipes: RecipeLookup
    serve: Serves
    clock: Clock
    server: Callable[[], str | None]  # where senders fetch large results


class Gateway:
    def __init__(self, parts: GatewayParts, *, ready: Callable[[], None] = lambda: None) -> None:
        self._parts = parts
        self._ready = ready
        self._intake = Intake(requests=parts.requests, recipes=parts.recipes, settings=parts.settings, clock=parts.clock)
        packing = ResultPacker(inline=parts.settings.inline * _MIB, kept=parts.settings.kept, server=parts.server, sign=parts.requests.sign)
        self._replies = ReplyEncoder(packing, parts.clock)
        self.health = GatewayHealth(parts.requests, parts.clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()
        self._news = threading.Event()
        self._over = threading.Event()

    def run(self) -> None:
        """Until `stop`. What keeps it from starting at all, such as a wrong password, is raised; what comes later is waited for."""
        asyncio.run(self._main())

    def once(self) -> None:
        """Take what is there, do what is due, send what is ready, and end: for cron."""
        asyncio.run(self._once())

    def stop(self) -> None:
        """From any thread or signal handler."""
        self._over.set()
        self._news.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stopped.set)

    # ── the loop ──────────────────────────────────────────────────────────────

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._over.is_set():
            return
        publisher = self._publisher()
        serving = threading.Thread(target=self._serve, args=(publisher,), name="onward-serve", daemon=True)
        serving.start()
        try:
            await self._sessions(publisher)
        finally:
            self.stop()
            await asyncio.to_thread(serving.join, _GRACE)
            self._parts.serve.close()

    def _publisher(self) -> Publisher:
        parts = self._parts
        return Publisher(parts.broker, parts.requests.outbox, self._replies, parts.clock, kept=parts.settings.kept)

    async def _sessions(self, publisher: Publisher) -> None:
        tries, begun = 0, False
        while not self._stopped.is_set():
            try:
                async with self._parts.broker.connected(name="onward gateway") as connection:
                    await self._prepare(connection)
                    if not begun:
                        self._ready()
                    begun, tries = True, 0
                    self.health.connected = True
                    await self._session(connection, publisher)
            except OnwardError as error:
                if not begun and not error.transient:
                    raise
                log.warning("%s; trying again%s", error.message, f" → {error.hint}" if error.hint and tries == 0 else "")
            except Exception as error:  # the library raises many; reconnecting helps with all of them
                log.warning("the connection to %s broke: %s; trying again", self._parts.broker.words, _words(error))
            finally:
                self.health.connected, self.health.dead_letters = False, None
            await self._pause(_AGAIN[min(tries, len(_AGAIN) - 1)])
            tries += 1

    async def _prepare(self, connection: AbstractConnection) -> None:
        for found in await ensure_queues(connection, self._parts.settings):
            if found.made or found.odd:
                log.log(logging.WARNING if found.odd else logging.INFO, "%s", found.words)
        store = self._parts.requests
        await take_lease(connection, store=store.id, words=store.database.words)

    async def _session(self, connection: AbstractConnection, publisher: Publisher) -> None:
        consumer = Consumer(self._intake, publisher, self._parts.settings, news=self._news.set)
        log.info("listening at %s: %s", self._parts.broker.words, ", ".join(consumer.doors.values()))
        closed = asyncio.ensure_future(connection.closed())
        running = (consumer.run(connection), publisher.run(connection), self._count_dead(connection), self._stopped.wait())
        tasks = [asyncio.create_task(one) for one in running]
        try:
            done, _ = await asyncio.wait([closed, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (closed, *tasks):
                task.cancel()
            await asyncio.gather(closed, *tasks, return_exceptions=True)
        for task in tasks:
            if task in done and task.cancelled():  # by the library, while it waited for the broker: we had cancelled nothing yet
                raise self._parts.broker.fell_silent()
            if task in done:
                task.result()
        if closed in done and not self._stopped.is_set():
            raise HostUnreachable(f"{self._parts.broker.words} ended the connection", hint="it restarts, or somebody closed it")

    async def _count_dead(self, connection: AbstractConnection) -> None:
        while True:
            self.health.dead_letters = await count_dead(connection)
            await asyncio.sleep(_COUNT)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _once(self) -> None:
        publisher = self._publisher()
        try:
            async with self._parts.broker.connected(name="onward gateway --once") as connection:
                await self._prepare(connection)
                await Consumer(self._intake, publisher, self._parts.settings, news=self._news.set).drain(connection)
                while (stepped := await asyncio.to_thread(self._parts.serve.step)).busy or stepped.checking:
                    await asyncio.sleep(0 if stepped.busy else _STEP)
                async with connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
                    while stepped.served and await publisher.send_due(connection, channel):
                        pass
        finally:
            self._parts.serve.close()

    # ── the thread ────────────────────────────────────────────────────────────

    def _serve(self, publisher: Publisher) -> None:
        while not self._over.is_set():
            self._news.clear()
            wait = self._step(publisher)
            if wait:
                self._news.wait(wait)

    def _step(self, publisher: Publisher) -> float:
        """How long to wait for the next."""
        try:
            stepped = self._parts.serve.step()
        except OnwardError as error:
            log.warning("requests wait: %s%s", error.message, f" → {error.hint}" if error.hint else "")
            return _AFTER_A_FAULT
        except Exception:
            log.exception("requests wait: internal error")
            return _AFTER_A_FAULT
        self.health.serves, self.health.stepped = stepped.served, self._parts.clock.now()
        news = stepped.open or publisher.may != stepped.served
        publisher.may = stepped.served
        if news and self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(publisher.wake.set)
        return 0.0 if stepped.busy else _STEP if stepped.open else _IDLE


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
