"""Serving: one process, one port. Ready when it says so; on Ctrl-C or SIGTERM it finishes what it is answering, and closes its store."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from onward.api.access.allowed_hosts import split_host
from onward.api.app import ApiServer
from onward.api.server_log import note
from onward.api.transport.http_protocol import OnwardHttpProtocol
from onward.api.transport.unidentified_connections import connections_for_this_process
from onward.errors import Conflict, InvalidInput, NotFound

_GRACE = 10  # seconds for answers under way
_KEEP_ALIVE = 75  # a training that logs once a minute keeps its connection


@dataclass(frozen=True, kw_only=True)
class Listening:
    """How the server is reached."""

    host: str = "127.0.0.1"
    port: int = 8765
    certfile: Path | None = None
    keyfile: Path | None = None
    root_path: str = ""
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.keyfile is not None) and (self.certfile is None):
            raise InvalidInput("--keyfile was given without --certfile", hint="give both, or the key inside the certificate's file")
        for file in (self.certfile, self.keyfile):
            if file is not None and not file.is_file():
                raise NotFound(f"there is no file {file}", hint="--certfile and --keyfile name PEM files")
        if self.root_path and (not self.root_path.startswith("/") or "//" in self.root_path):
            raise InvalidInput(f"--root-path {self.root_path!r} does not begin with a slash", hint="write it like /onward")
        for name in self.names:
            if split_host(name) != (name.strip().lower().rstrip("."), "") or not name.strip():
                raise InvalidInput(
                    f"--name {name!r} is not the name of a host",
                    hint="give only the name, without http://, port or path: --name tracker.example.org; --root-path takes the path",
                )

    def url(self, port: int) -> str:
        host = self.names[0] if self.names else {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self.host, self.host)
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self.certfile else 'http'}://{shown}:{port}{self.root_path.rstrip('/')}"


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets=sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Theirs would raise the signal again when all is done; then nobody could close the store."""
        before = {which: signal.signal(which, self.handle_exit) for which in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for which, handler in before.items():
                signal.signal(which, handler)


def open_socket(listening: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    opened = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # asyncio sends at once (no delay) only where the protocol is named
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((listening.host, listening.port))
        opened.listen(2048)
    except OverflowError as error:
        opened.close()
        raise InvalidInput(f"{listening.port} is not a port", hint="ports are 0 to 65535; 0 chooses a free one") from error
    except OSError as error:
        opened.close()
        raise Conflict(
            f"cannot listen on {listening.host} port {listening.port}: {error.strerror or error}",
            hint="use another --port, or 0 for a free one",
        ) from error
    opened.setblocking(False)
    return opened


def serve(server: ApiServer, listening: Listening, opened: socket.socket, *, ready: Callable[[], None]) -> None:
    """Until a signal says to stop. The store is still open afterwards; whoever opened it closes it."""
    config: dict[str, Any] = {
        "loop": "auto",  # uvloop where it is installed
        "http": type("ThisServersWire", (OnwardHttpProtocol,), {"strangers": connections_for_this_process()}),
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": _KEEP_ALIVE,
        "timeout_graceful_shutdown": _GRACE,
        "ssl_certfile": listening.certfile,
        "ssl_keyfile": listening.keyfile,
    }
    served = _Uvicorn(uvicorn.Config(server.gate, **config), ready=ready, stopping=server.stopping)
    server.background.start()
    server.services.tracker.upkeep.start()
    try:
        served.run(sockets=[opened])
    finally:
        server.background.stop()
        note(logging.INFO, "stop", "the server has stopped")
