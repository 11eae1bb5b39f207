"""The broker: its address, our login, and a connection to it. Whatever prevents a connection is reported in a sentence, without secrets."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from onward.errors import HostUnreachable, InvalidInput, NotAllowed, NotFound, OnwardError
from onward.gateway.rabbitmq.unreadable_messages import tolerate_unreadable
from onward.model.requests.gateway_settings import GatewaySettings
from onward.supervisor.telemetry.tracker_server import read_token

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection

_PORTS = {"amqp": 5672, "amqps": 5671}
_PATIENCE = 20.0  # seconds to connect
_HEARTBEAT = 20  # seconds; a dead connection is noticed after three
_SECRET = ("RABBITMQ_PASSWORD", "HPC_RABBITMQ_PASSWORD")
_NO_LIBRARY = "the gateway needs aio-pika, which is not installed"


@dataclass(frozen=True, kw_only=True)
class Broker:
    host: str
    port: int
    vhost: str
    user: str
    password: str = field(repr=False)
    tls: bool
    ca_file: Path | None = None

    @classmethod
    def of(
        cls,
        env: Mapping[str, str],
        settings: GatewaySettings,
        *,
        url: str | None = None,
        user: str | None = None,
        password: str | None = None,
    ) -> Broker:
        """What was given, else the settings, else the variables that the first gateway and its applications had."""
        parts = urlsplit(url or settings.url or broker_url_of(env))
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
            raise InvalidInput("the broker's address must be amqp://HOST or amqps://HOST, without user and password", hint="gateway.url")
        if user is None or password is None:
            user, password = login_of(env, settings)
        try:
            port = parts.port or _PORTS[parts.scheme]
        except ValueError as error:
            raise InvalidInput(f"the broker's port is invalid: {error}", hint="gateway.url") from error
        vhost = unquote(parts.path[1:]) or "/"
        ca_file = settings.ca_file or (Path(env["SSL_CERT_FILE"]) if env.get("SSL_CERT_FILE") else None)
        return cls(host=parts.hostname, port=port, vhost=vhost, user=user, password=password, tls=parts.scheme == "amqps", ca_file=ca_file)

    @property
    def words(self) -> str:
        """For messages: without the password."""
        path = "" if self.vhost == "/" else f"/{self.vhost}"
        return f"{'amqps' if self.tls else 'amqp'}://{self.user}@{self.host}:{self.port}{path}"

    @asynccontextmanager
    async def connected(self, *, name: str = "onward") -> AsyncIterator[AbstractConnection]:
        """Until the block ends. A dead connection ends it too: the library then cancels whatever waits for the broker."""
        try:
            connection = await self._connect(name)
            try:
                yield connection
            finally:
                await _closed(connection)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # it was one of us
                raise
            raise self.fell_silent() from error

    def fell_silent(self) -> HostUnreachable:
        return HostUnreachable(f"{self.words} stopped answering", hint="check the network and the broker")

    def open_socket(self, *, timeout: float) -> socket.socket:
        """A plain one, for what the library cannot do."""
        sock = socket.create_connection((self.host, self.port), timeout=timeout)
        return self._context().wrap_socket(sock, server_hostname=self.host) if self.tls else sock

    async def check(self) -> None:
        """Raise where trying again cannot help: a login or certificate that is wrong. A broker that is away may come."""
        try:
            async with self.connected():
                pass
        except OnwardError as error:
            if not error.transient:
                raise

    async def _connect(self, name: str) -> AbstractConnection:
        try:
            import aio_pika
        except ImportError as error:
            raise NotFound(_NO_LIBRARY, hint="pip install 'onward[gateway]'") from error
        tolerate_unreadable()
        secure: dict[str, Any] = {"ssl": True, "ssl_context": self._context()} if self.tls else {}
        try:
            connection: AbstractConnection = await aio_pika.connect(
                host=self.host,
                port=self.port,
                login=self.user,
                password=self.password,
                virtualhost=self.vhost,
                heartbeat=_HEARTBEAT,
                timeout=_PATIENCE,
                client_properties={"connection_name": name},
                **secure,
            )
        except (OSError, TimeoutError, aio_pika.exceptions.AMQPError, asyncio.IncompleteReadError) as error:
            raise self._told(error) from error
        return connection

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"{self.ca_file} is not a PEM file of an authority: {error}", hint="check gateway.ca-file") from error

    def _told(self, error: BaseException) -> OnwardError:
        """Why there is no connection, and what to do."""
        from aio_pika.exceptions import IncompatibleProtocolError, ProbableAuthenticationError

        causes = list(_causes(error))
        said = " ".join(str(one) for one in causes)
        for cause in causes:
            if isinstance(cause, ssl.SSLCertVerificationError):
                hint = "gateway.ca-file names the authority that signed it; its certificate must be for this host"
                return NotAllowed(f"the certificate of {self.words} is not trusted: {cause.verify_message}", hint=hint)
            if isinstance(cause, ssl.SSLError):
                return HostUnreachable(
                    f"{self.words} does not speak TLS: {cause.reason}", hint="5671 is the usual port for amqps, 5672 for amqp"
                )
        if isinstance(error, ProbableAuthenticationError) or "ACCESS_REFUSED" in said:
            hint = "see gateway.user and gateway.password-file, or RABBITMQ_USER and RABBITMQ_PASSWORD; guest may log in from loopback only"
            return NotAllowed(f"the broker refused the login: {self.words}", hint=hint)
        if "NOT_ALLOWED" in said or "Connection.Close" in said:  # the library does not tell what the broker said when it opened no vhost
            hint = f"rabbitmqctl add_vhost {self.vhost}; rabbitmqctl set_permissions -p {self.vhost} {self.user} '.*' '.*' '.*'"
            return NotAllowed(f"{self.user} may not use the virtual host {self.vhost} of {self.words}, or it does not exist", hint=hint)
        if isinstance(error, IncompatibleProtocolError):
            return HostUnreachable(f"{self.words} does not speak AMQP", hint="5672 is the usual port for amqp, 5671 for amqps")
        why = "no answer in time" if isinstance(error, TimeoutError) else _reason(causes)
        return HostUnreachable(f"{self.words} cannot be reached: {why}", hint="check that RabbitMQ runs there, and the port")


def forget_secrets(env: MutableMapping[str, str] = os.environ) -> None:
    """Once they are read: whatever this process starts need not know them."""
    for name in _SECRET:
        env.pop(name, None)


def broker_url_of(env: Mapping[str, str]) -> str:
    """The first gateway connected by TLS, its applications without."""
    if env.get("RABBITMQ_HOST"):
        return f"amqps://{env['RABBITMQ_HOST']}"
    if env.get("HPC_RABBITMQ_HOST"):
        return f"amqp://{env['HPC_RABBITMQ_HOST']}"
    raise InvalidInput("no broker is named", hint='write url = "amqps://HOST/" below [gateway] in the settings file, or set RABBITMQ_HOST')


def login_of(env: Mapping[str, str], settings: GatewaySettings) -> tuple[str, str]:
    if settings.user and settings.password_file:
        try:
            return settings.user, read_token(settings.password_file, folder=False)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise NotFound(f"the password cannot be read from {settings.password_file}: {why}", hint="gateway.password-file") from error
    for prefix in ("RABBITMQ", "HPC_RABBITMQ"):
        if env.get(f"{prefix}_USER") and env.get(f"{prefix}_PASSWORD"):
            return env[f"{prefix}_USER"], env[f"{prefix}_PASSWORD"]
    hint = "set user and password-file below [gateway] in the settings file, or RABBITMQ_USER and RABBITMQ_PASSWORD"
    raise InvalidInput("the broker's user and password are not set", hint=hint)


async def _closed(connection: AbstractConnection) -> None:
    """A broker that is gone cannot say goodbye."""
    try:
        async with asyncio.timeout(5):
            await connection.close()
    except Exception:  # it is over either way
        return


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    while error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__ or error
    return found


def _reason(causes: list[BaseException]) -> str:
    for one in causes:
        if isinstance(one, OSError) and one.errno:
            return os.strerror(one.errno) if one.errno > 0 else one.strerror or str(one)  # below zero: a name that nobody knows
    return str(causes[-1]) or type(causes[-1]).__name__
