"""`onward up`: the tracker, one process on one port."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.output import to_stderr, to_stdout
from onward.cli.server.tokens import DbOption

if TYPE_CHECKING:
    from onward.gateway.main import Gateway
    from onward.gateway.wiring import GatewayLogins
    from onward.operations.tracker_access.location import TrackerLocation

_LINK_HOURS = 24
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def up(
    host: Annotated[str, typer.Option("--host", help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 for a free one.")] = 8765,
    db: DbOption = None,
    files: Annotated[
        str | None, typer.Option("--files", metavar="FOLDER", help="Where uploads are kept. Default: next to the database.")
    ] = None,
    certfile: Annotated[Path | None, typer.Option("--certfile", metavar="FILE", help="TLS: the certificate, in PEM.")] = None,
    keyfile: Annotated[Path | None, typer.Option("--keyfile", metavar="FILE", help="TLS: its key, if in a separate file.")] = None,
    root_path: Annotated[
        str, typer.Option("--root-path", metavar="PATH", help="The path under which a reverse proxy serves it: /onward.")
    ] = "",
    name: Annotated[
        list[str] | None, typer.Option("--name", metavar="HOST", help="A host name that browsers and clients may use; repeat.")
    ] = None,
    no_tend: Annotated[bool, typer.Option("--no-tend", help="Only show runs, do not repair them.")] = False,
    gateway: Annotated[bool, typer.Option("--gateway", help="Also take requests from the RabbitMQ broker that the settings name.")] = False,
    demo_data: Annotated[bool, typer.Option("--demo-data", help="Fill an empty database with runs to try things out.")] = False,
) -> None:
    """Serve the tracker, and tend runs.

    Prints a link that logs a browser in, once. Ctrl-C stops the server; what it acknowledged is stored.
    """
    import gc
    import getpass
    import socket

    from onward.cli.context import open_context
    from onward.operations.remembered_roots import roots_text
    from onward.operations.tracker_access.location import ServingLock, login_link, open_tracker, tracker_location
    from onward.operations.tracker_access.owner_logins import OwnerLogins
    from onward.tracker.access.tokens import Rights

    location = tracker_location(os.environ, db, files)
    logins = _gateway_logins() if gateway else None
    serving = ServingLock(location)
    gc.disable()  # what a start makes stays: nothing is won by looking through it for garbage, again and again
    try:
        from onward.api.access.allowed_hosts import HostRules
        from onward.api.app import make_server
        from onward.api.server import Listening, open_socket, serve
        from onward.api.server_log import set_up
        from onward.api.web_app import missing_page

        set_up()
        listening = Listening(host=host, port=port, certfile=certfile, keyfile=keyfile, root_path=root_path, names=tuple(name or ()))
        opened_socket = open_socket(listening)
        url = listening.url(opened_socket.getsockname()[1])
        with open_tracker(location) as opened:
            if demo_data:
                from onward.tracker.demo_runs import fill

                to_stderr(f"demo data: {fill(opened.tracker)} runs")
            hosts = HostRules.of(bound=host, machine=socket.gethostname(), given=listening.names)
            context = open_context()
            private = certfile is not None or host in _LOOPBACK
            owners = OwnerLogins(os.environ) if private else None
            server = make_server(
                opened.tracker,
                opened.tokens,
                context,
                location,
                hosts=hosts,
                root=root_path,
                secure=certfile is not None,
                owners=owners,
                tend=not no_tend,
                url=url,
            )

            def ready() -> None:
                serving.at(url)
                minutes = 60 * _LINK_HOURS
                to_stdout(login_link(opened.tokens, url, name=getpass.getuser(), rights=Rights.ADMIN, minutes=minutes, owners=owners))
                _flush()
                to_stderr(f"onward serves {location.words} at {url}; the link above logs a browser in, once")
                to_stderr(f"  runs under {roots_text(list(map(str, context.roots)), 'and')}")
                if how := missing_page():
                    to_stderr(f"  → there is no web page here, only the API: {how}")
                if not private:
                    to_stderr("  → this is not encrypted: the network can read tokens; use --certfile, or a proxy with TLS in front")

            gc.freeze()
            gc.enable()
            with _gateway_beside(logins, location) if logins else contextlib.nullcontext():
                serve(server, listening, opened_socket, ready=ready)
    finally:
        gc.enable()
        serving.close()


def _gateway_logins() -> GatewayLogins:
    """Before anything else is opened: the server's own desk need not know them."""
    import asyncio

    from onward.cli.requests.gateway import quiet_library
    from onward.gateway.wiring import GatewayLogins
    from onward.settings import load_settings

    logins = GatewayLogins.taken(os.environ, load_settings(os.environ).gateway)
    quiet_library()
    asyncio.run(logins.broker.check())
    return logins


@contextlib.contextmanager
def _gateway_beside(logins: GatewayLogins, location: TrackerLocation) -> Iterator[None]:
    """A gateway in a thread, until the block ends."""
    import threading

    from onward.cli.context import open_context
    from onward.cli.requests.gateway import set_up_logs
    from onward.gateway.wiring import open_gateway

    set_up_logs()
    with open_gateway(logins, open_context(), location) as opened:
        thread = threading.Thread(target=_run_gateway, args=(opened,), name="onward-gateway")
        thread.start()
        try:
            yield
        finally:
            opened.stop()
            thread.join()


def _run_gateway(gateway: Gateway) -> None:
    """The server goes on without it, and says so."""
    import logging

    from onward.errors import OnwardError

    try:
        gateway.run()
    except OnwardError as error:
        logging.getLogger("onward.gateway").error("the gateway has ended, the server continues: %s → %s", error.message, error.hint)


def _flush() -> None:
    import sys

    sys.stdout.flush()
