"""The PostgreSQL bed: Debian's server in a folder of its own, on a socket and a port of loopback, run by its own account."""

import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from beds import packages, place
from beds.bed import Say, describe, line, say_at_once
from beds.command import attempt, run
from beds.daemon import Daemon
from beds.errors import BedError
from beds.place import beds_folder, claim, locked, own_folder, require_root

PACKAGES = ("postgresql",)
PORT = 17432
_PROGRAMS = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Postgres:
    """One server; everything of it lies in `folder`. Whoever may open the socket is let in as the superuser `onward`."""

    folder: Path
    port: int

    @property
    def account(self) -> str | None:
        """Who runs it: PostgreSQL refuses root."""
        return "postgres" if os.geteuid() == 0 else None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://onward@/{database}?host={self.folder}&port={self.port}"

    def prepare(self) -> None:
        """Build an empty cluster where there is none."""
        if self.account:
            own_folder(self.folder, owner=self.account, mode=0o755)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
        if (self.data / "PG_VERSION").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)  # left by a killed predecessor
        settings = [*("--auth=trust", "--username=onward", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"), f"--pgdata={self.data}"]
        run([*self._as_account(), program("initdb"), *settings], timeout=120)

    def daemon(self) -> Daemon:
        return Daemon(
            name="postgres",
            argv=(
                program("postgres"),
                *("-D", str(self.data), "-k", str(self.folder), "-h", "127.0.0.1", "-p", str(self.port)),
                *("-c", "max_connections=100", "-c", "shared_buffers=32MB", "-c", "fsync=on"),
            ),
            record=self.folder / "record" if not self.account else self.folder.with_name(f"{self.folder.name}.record"),
            output=self.folder.with_name(f"{self.folder.name}.output"),
            account=self.account,
            port=self.port,
            patience=20,
        )

    def answers(self) -> bool:
        return attempt([program("pg_isready"), "-h", str(self.folder), "-p", str(self.port), "-q"], timeout=5).ok

    def start(self) -> bool:
        return self.daemon().start(self.answers, timeout=60)

    def stop(self, *, how: str = "fast") -> None:
        """`immediate` is what a crash is like: nothing is written any more, and the next start recovers."""
        run([*self._as_account(), program("pg_ctl"), "-D", str(self.data), "-m", how, "-w", "stop"], timeout=60)
        self.daemon().stop()

    def create(self, database: str) -> str:
        self.sql(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def sql(self, text: str, *, database: str = "postgres") -> str:
        where = ["-h", str(self.folder), "-p", str(self.port), "-U", "onward", "-d", database]
        return run(["psql", *where, "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text], timeout=60)

    def _as_account(self) -> list[str]:
        return ["setpriv", f"--reuid={self.account}", f"--regid={self.account}", "--init-groups"] if self.account else []


class PostgresBed:
    name = "postgres"
    packages: tuple[str, ...] = PACKAGES
    answers: tuple[str, ...] = ()

    def __init__(self, folder: Path | None = None, *, say: Say = say_at_once) -> None:
        self.top = (folder or beds_folder() / self.name).absolute()
        self.server = Postgres(self.top / "cluster", PORT)
        self._say = say

    def up(self) -> None:
        require_root("bringing PostgreSQL up")
        packages.ensure(PACKAGES)
        with locked(self.top):
            claim(self.top)
            self.server.prepare()
            fresh = self.server.start()
        self._say(f"postgres: {'started' if fresh else 'runs already'}; {self.server.url()}")

    def down(self, *, wipe: bool = False) -> None:
        require_root("taking PostgreSQL down")
        with locked(self.top):
            if self.server.daemon().process() is not None:
                self.server.stop()
            if wipe:
                place.wipe(self.top)

    def is_up(self) -> bool:
        return self.server.daemon().running and self.server.answers()

    def status(self) -> list[str]:
        return [line("server", describe(self.server.daemon().process()))]

    def environment(self) -> dict[str, str]:
        return {"ONWARD_BED_POSTGRES": self.server.url()} if self.server.data.exists() else {}


def program(name: str) -> str:
    """One of the server's own, which Debian keeps apart by version: the newest."""
    found = sorted(_PROGRAMS.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    if not found:
        raise BedError(f"{name} of PostgreSQL is not installed", hint="apt-get install postgresql")
    return str(found[-1])


def is_installed() -> bool:
    return any(_PROGRAMS.glob("*/bin/postgres"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
