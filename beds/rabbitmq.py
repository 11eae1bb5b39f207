"""The RabbitMQ bed: Debian's broker in a folder of its own, on loopback, plain and by TLS, run by its own account."""

import os
import pwd
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from beds import packages, place
from beds.bed import Say, describe, line, say_at_once
from beds.certificates import Authority
from beds.command import run
from beds.daemon import Daemon, listens
from beds.place import beds_folder, claim, locked, own_folder, require_root, write_whole
from beds.postgres import free_port
from beds.waiting import until

PACKAGES = ("rabbitmq-server", "openssl")
USER = "onward"
_FRUGAL = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"  # do not spin while idle
_PROGRAMS = Path("/usr/lib/rabbitmq/bin")  # those in /usr/sbin are wrappers that want Debian's own folders


@dataclass(frozen=True)
class Ports:
    """All on 127.0.0.1. Erlang's nodes find each other through epmd, and talk on a port of their own."""

    plain: int
    tls: int
    epmd: int
    nodes: int


PORTS = Ports(plain=17672, tls=17671, epmd=17369, nodes=17673)


@dataclass(frozen=True)
class RabbitMQ:
    """One broker; everything of it lies in `folder`. The user `onward` may do everything in every virtual host."""

    folder: Path
    ports: Ports

    @property
    def account(self) -> str | None:
        """Who runs it: as Debian has it, not root."""
        return "rabbitmq" if os.geteuid() == 0 else None

    @property
    def password(self) -> str:
        return (self.folder / "password").read_text()

    @property
    def authority(self) -> Authority:
        """Who signed the certificate of the TLS port."""
        return Authority(self.folder / "tls")

    def url(self, vhost: str = "/", *, tls: bool = False) -> str:
        """Without user and password, as the settings have it."""
        port = self.ports.tls if tls else self.ports.plain
        return f"{'amqps' if tls else 'amqp'}://127.0.0.1:{port}/{'' if vhost == '/' else vhost}"

    def prepare(self) -> None:
        """Make the folder, and once a password and the certificates."""
        owner = self.account or _me()
        own_folder(self.folder, owner=owner, mode=0o755)
        if not (self.folder / "password").exists():
            write_whole(self.folder / "password", secrets.token_urlsafe(24).encode(), owner=owner, mode=0o600)
        if not self.authority.exists():
            self.authority.make(owner=owner)
        write_whole(self.folder / "rabbitmq.conf", self._config().encode(), owner=owner, mode=0o600)
        write_whole(self.folder / "enabled_plugins", b"[].\n", owner=owner)
        write_whole(self.folder / "environment", b"", owner=owner)  # instead of /etc/rabbitmq/rabbitmq-env.conf

    def names(self) -> Daemon:
        """Erlang's table of nodes. One of our own: the machine's, if there is one, is none of our business."""
        return Daemon(
            name="epmd",
            argv=("/usr/bin/epmd", "-address", "127.0.0.1", "-port", str(self.ports.epmd)),
            record=self.folder / "epmd.record",
            output=self.folder / "epmd.output",
            account=self.account,
            port=self.ports.epmd,
        )

    def daemon(self) -> Daemon:
        return Daemon(
            name="rabbitmq",
            argv=(str(_PROGRAMS / "rabbitmq-server"),),
            record=self.folder / "record",
            output=self.folder / "output",
            log=self.folder / "log",
            account=self.account,
            port=self.ports.plain,
            patience=30,
            environment=self._surroundings(),
        )

    def answers(self) -> bool:
        return listens(self.ports.plain) and listens(self.ports.tls)

    def start(self) -> bool:
        self.names().start(lambda: listens(self.ports.epmd))
        return self.daemon().start(self.answers, timeout=90)

    def stop(self, *, hard: bool = False) -> None:
        """`hard` is kill −9: what was not confirmed to a publisher may be gone, and whoever was connected hears nothing."""
        self.daemon().stop(hard=hard)
        until(lambda: not listens(self.ports.plain), timeout=10, pause=0.01)  # its threads die one by one, and one holds the port

    def end(self) -> None:
        """Stop it and what it needs."""
        self.stop(hard=True)
        self.names().stop()

    def reset(self) -> None:
        """An empty broker again, with the same password and certificates."""
        self.stop(hard=True)
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        self.start()

    def control(self, *words: str, stdin: str = "") -> str:
        """rabbitmqctl. It takes a second or two: it is a whole Erlang that starts, asks and ends."""
        account = ["setpriv", f"--reuid={self.account}", f"--regid={self.account}", "--init-groups"] if self.account else []
        return run([*account, str(_PROGRAMS / "rabbitmqctl"), "--quiet", *words], timeout=60, env=self._surroundings(), stdin=stdin)

    def add_vhost(self, name: str) -> str:
        """A virtual host of that name, empty, and its address: so tests share a broker and see nothing of each other."""
        vhost, user, all_ = (f'<<"{text}">>' for text in (name, USER, ".*"))
        allow = f"rabbit_auth_backend_internal:set_permissions({user}, {vhost}, {all_}, {all_}, {all_}, {user})"
        self.control("eval", f"rabbit_vhost:add({vhost}, {user}), {allow}.")  # as one: each call of it costs a second
        return self.url(name)

    def cut_connections(self) -> None:
        """End every connection from the broker's side."""
        self.control("close_all_connections", "the bed cut it")

    def _config(self) -> str:
        tls = self.authority
        return "\n".join(
            [
                f"listeners.tcp.1 = 127.0.0.1:{self.ports.plain}",
                f"listeners.ssl.1 = 127.0.0.1:{self.ports.tls}",
                f"ssl_options.cacertfile = {tls.certificate}",
                f"ssl_options.certfile = {tls.server_certificate}",
                f"ssl_options.keyfile = {tls.server_key}",
                "ssl_options.verify = verify_none",
                f"default_user = {USER}",
                f"default_pass = {self.password}",
                "disk_free_limit.absolute = 50MB",
                "vm_memory_high_watermark.absolute = 1GB",
                "",
            ]
        )

    def _surroundings(self) -> Mapping[str, str]:
        """What the programs read; all that is not named here has its default in Debian's own folders."""
        return {
            "HOME": str(self.folder),  # where Erlang keeps the cookie by which its nodes trust each other
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.ports.epmd),
            "RABBITMQ_NODENAME": "onward-bed@localhost",
            "RABBITMQ_DIST_PORT": str(self.ports.nodes),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "environment"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_LOGS": str(self.folder / "log"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _FRUGAL,
            "RUNNING_UNDER_SYSTEMD": "true",  # become the broker, not a shell that waits for it: the record names the one to kill
        }


class RabbitMQBed:
    name = "rabbitmq"
    packages: tuple[str, ...] = PACKAGES
    answers: tuple[str, ...] = ()

    def __init__(self, folder: Path | None = None, *, say: Say = say_at_once) -> None:
        self.top = (folder or beds_folder() / self.name).absolute()
        self.server = RabbitMQ(self.top / "broker", PORTS)
        self._say = say

    def up(self) -> None:
        require_root("bringing RabbitMQ up")
        packages.ensure(PACKAGES)
        with locked(self.top):
            claim(self.top)
            self.server.prepare()
            fresh = self.server.start()
        self._say(f"rabbitmq: {'started' if fresh else 'runs already'}; {self.server.url()} and {self.server.url(tls=True)}")

    def down(self, *, wipe: bool = False) -> None:
        require_root("taking RabbitMQ down")
        with locked(self.top):
            self.server.stop()
            self.server.end()
            if wipe:
                place.wipe(self.top)

    def is_up(self) -> bool:
        return self.server.daemon().running and self.server.answers()

    def status(self) -> list[str]:
        return [line(daemon.name, describe(daemon.process())) for daemon in (self.server.names(), self.server.daemon())]

    def environment(self) -> dict[str, str]:
        """Never the password itself: the file that holds it."""
        if not (self.server.folder / "password").exists():
            return {}
        return {
            "ONWARD_BED_RABBITMQ": self.server.url(),
            "ONWARD_BED_RABBITMQ_TLS": self.server.url(tls=True),
            "ONWARD_BED_RABBITMQ_CA": str(self.server.authority.certificate),
            "ONWARD_BED_RABBITMQ_USER": USER,
            "ONWARD_BED_RABBITMQ_PASSWORD_FILE": str(self.server.folder / "password"),
        }

    def stop_broker(self, *, hard: bool = False) -> None:
        self.server.stop(hard=hard)

    def start_broker(self) -> None:
        self.server.start()


def is_installed() -> bool:
    return (_PROGRAMS / "rabbitmq-server").exists()


def free_ports() -> Ports:
    return Ports(plain=free_port(), tls=free_port(), epmd=free_port(), nodes=free_port())


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
