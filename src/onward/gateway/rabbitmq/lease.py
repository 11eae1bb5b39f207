"""The lease: one store per virtual host. Two gateways with separate stores would each make a run of the same request, and answer twice.

It is a queue that is there as long as a gateway consumes from it, and whose arguments name the store: the broker refuses to declare it
with others. Gateways that share a store share the lease.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

from onward.errors import Conflict
from onward.gateway.rabbitmq.queues import DEAD

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

LEASE = "onward.gateway"
_UNUSED = 60_000  # ms; of one that was made and never consumed from, because its gateway died in between


async def take_lease(connection: AbstractConnection, *, store: str, words: str) -> None:
    """Held until the connection ends; without it the connection ends. `words`: where the store is. Conflict: another store has it."""
    from aio_pika.exceptions import ChannelClosed

    arguments: dict[str, Any] = {"x-expires": _UNUSED, "x-dead-letter-exchange": DEAD, "x-dead-letter-routing-key": f"store.{store}"}
    channel = await connection.channel()
    try:
        queue = await channel.declare_queue(LEASE, durable=True, auto_delete=True, arguments=arguments)
        await queue.consume(
            _ignore, no_ack=True, consumer_tag=f"onward gateway, {socket.gethostname()}, process {os.getpid()}, {id(channel):x}"
        )
    except ChannelClosed as error:
        if "PRECONDITION_FAILED" not in str(error):
            raise
        raise Conflict(
            f"a gateway with another store takes the requests of this virtual host; this one's store is {words}",
            hint="run one of them, or let both use one PostgreSQL (--db postgresql://…), or give each a virtual host of its own; "
            "`rabbitmqctl list_consumers -p VHOST` says on which machine the other runs",
        ) from error
    loop = asyncio.get_running_loop()
    underlay = await channel.get_underlay_channel()
    underlay.on_consumer_cancel_callbacks.add(lambda *_: loop.create_task(connection.close()))  # somebody deleted the queue


async def _ignore(_: object) -> None:
    """Nothing is ever sent there."""
