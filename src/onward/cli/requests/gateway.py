"""`onward gateway`: take requests from a RabbitMQ broker, and answer each of them, once."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from onward.cli.output import to_stderr, to_stdout
from onward.cli.server.tokens import DbOption

app = typer.Typer(name="gateway", invoke_without_command=True)

V1Option = Annotated[bool, typer.Option("--v1", help="Also take messages of protocol v1, from the queue hpc-jobs.")]


@app.callback()
def gateway(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, do what is due, and exit. For cron.")] = False,
    v1: V1Option = False,
    health_port: Annotated[
        int | None,
        typer.Option("--health-port", min=0, max=65535, help="Serve /health/live, /health/ready and /metrics on this port of 127.0.0.1."),
    ] = None,
    db: DbOption = None,
) -> None:
    """Take training requests from a RabbitMQ broker, submit their runs, and answer each request once.

    The settings' table [gateway] names the broker. Ctrl-C stops it; accepted requests continue when it runs again.
    """
    if ctx.invoked_subcommand is not None:
        return
    import contextlib
    import signal

    from onward.api.server_log import set_up
    from onward.cli.context import open_context
    from onward.gateway.health import health_server
    from onward.gateway.wiring import GatewayLogins, open_gateway
    from onward.operations.tracker_access.location import tracker_location
    from onward.settings import load_settings

    location = tracker_location(os.environ, db)
    logins = GatewayLogins.taken(os.environ, load_settings(os.environ).gateway, v1=v1)
    set_up()
    set_up_logs()

    def ready() -> None:
        to_stderr(f"onward gateway: listening at {logins.broker.words}; requests are stored next to {location.words}")

    with open_gateway(logins, open_context(), location, ready=ready) as opened:
        if once:
            opened.once()
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: opened.stop())
        with contextlib.nullcontext() if health_port is None else health_server(opened.health, health_port):
            opened.run()


@app.command("declare")
def declare(v1: V1Option = False) -> None:
    """Create the gateway's queues if they are missing."""
    import asyncio
    from dataclasses import replace

    from onward.gateway.rabbitmq.connection import Broker
    from onward.gateway.rabbitmq.queues import QueueCheck, ensure_queues
    from onward.settings import load_settings

    settings = load_settings(os.environ).gateway
    settings = replace(settings, v1=replace(settings.v1, enabled=settings.v1.enabled or v1))
    broker = Broker.of(os.environ, settings)
    quiet_library()

    async def done() -> list[QueueCheck]:
        async with broker.connected(name="onward gateway declare") as connection:
            return await ensure_queues(connection, settings)

    found = asyncio.run(done())
    for one in found:
        to_stdout(one.words)
    if any(one.odd for one in found):
        to_stderr("onward: existing queues are used as they are\n  → to replace one: `rabbitmqctl delete_queue NAME`, then this command")
        raise typer.Exit(5)


@app.command("schema")
def schema(
    recipe: Annotated[
        list[str] | None, typer.Argument(metavar="[RECIPE]…", help="Only for these recipes. Default: all recipes of this site.")
    ] = None,
) -> None:
    """Print the JSON Schema of a request."""
    import json

    from onward.inputs.recipes.catalog import read_recipes
    from onward.inputs.recipes.request_schema import request_schema
    from onward.settings import load_settings

    recipes = read_recipes(load_settings(os.environ).gateway.recipes)
    chosen = [recipes.get(name) for name in recipe] if recipe else list(recipes)
    to_stdout(json.dumps(request_schema(chosen), indent=2))


def set_up_logs() -> None:
    """The gateway's own log lines. Its library's lines about a broken connection are left out: the gateway logs that itself."""
    import logging

    for name in ("onward.gateway", "onward.operations.requests.service"):
        logging.getLogger(name).setLevel(logging.INFO)
    quiet_library()


def quiet_library() -> None:
    import logging

    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
