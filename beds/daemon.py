"""A program that a bed starts, finds again, and ends: by process number and start time.

The record of a daemon is written by the daemon's own process before it becomes the daemon, so
nothing can be started and then forgotten, whenever the bed itself is killed.
"""

import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beds.errors import BedError
from beds.process import Process
from beds.waiting import until

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_TAIL_LINES = 15
_LISTEN = "0A"  # the kernel's number for a listening socket

_BECOME = """
set -e
record=$1; shift
started=$(cut -d' ' -f22 /proc/$$/stat)
echo "$$ $started $(cat /proc/sys/kernel/random/boot_id)" > "$record.new"
mv "$record.new" "$record"
exec "$@"
"""


@dataclass(frozen=True)
class Daemon:
    """How to run one daemon in the foreground, and where its record and its output lie."""

    name: str
    argv: tuple[str, ...]
    record: Path
    output: Path
    log: Path | None = None  # where it writes its own log, shown when it fails
    account: str | None = None  # the user it runs as, if not root
    port: int | None = None  # on loopback; must be free before the start
    patience: float = 10  # seconds from SIGTERM to SIGKILL
    environment: Mapping[str, str] = field(default_factory=dict)

    def process(self) -> Process | None:
        """The process this daemon was last started as, if it lives."""
        try:
            found = Process.parse(self.record.read_text())
        except FileNotFoundError:
            return None
        return found if found is not None and found.alive else None

    @property
    def running(self) -> bool:
        """Alive and not paused."""
        process = self.process()
        return process is not None and not process.paused

    def check_port(self) -> None:
        """Raise if another program has this daemon's port."""
        if self.port is not None and self.process() is None and not _port_is_free(self.port):
            raise BedError(
                f"{self.name} needs port {self.port} of 127.0.0.1, and another program has it",
                hint=f"\"ss -ltnp 'sport = :{self.port}'\" names it",
            )

    def start(self, ready: Callable[[], bool], *, timeout: float = 20) -> bool:
        """Have it running and `ready`; False if it was running already."""
        process = self.process()
        if process is not None:
            process.send(signal.SIGCONT)
            fresh = False
        else:
            self._launch()
            fresh = True
        alive_or_ready = until(lambda: self.process() is None or ready(), timeout=timeout, pause=0.03)
        if self.process() is None:
            raise BedError(f"{self.name} ended at once: {self._last_words()}", hint=self._look())
        if not alive_or_ready:
            raise BedError(
                f"{self.name} runs but did not answer within {timeout:.0f} s: {self._last_words()}",
                hint=self._look(),
            )
        return fresh

    def ask_to_end(self) -> None:
        """Send SIGTERM and do not wait."""
        process = self.process()
        if process is not None:
            process.send(signal.SIGTERM)
            process.send(signal.SIGCONT)

    def stop(self, *, hard: bool = False) -> bool:
        """End it and wait for that; False if it was not running."""
        process = self.process()
        if process is None:
            self.record.unlink(missing_ok=True)
            return False
        if not hard:
            self.ask_to_end()
        if hard or not process.wait_gone(self.patience):
            process.send(signal.SIGKILL)
        if not process.wait_gone(10):
            raise BedError(
                f"{self.name} (pid {process.pid}) does not end, not even by SIGKILL",
                hint=f"see its state in /proc/{process.pid}/status; D means it waits for a disk",
            )
        self.record.unlink(missing_ok=True)
        return True

    def pause(self) -> None:
        process = self._must_run()
        process.send(signal.SIGSTOP)
        until(lambda: process.paused, timeout=2, pause=0.01)

    def resume(self) -> None:
        self._must_run().send(signal.SIGCONT)

    def _must_run(self) -> Process:
        process = self.process()
        if process is None:
            raise BedError(f"{self.name} does not run", hint="'python3 -m beds up' starts it")
        return process

    def _launch(self) -> None:
        self.check_port()
        self.record.unlink(missing_ok=True)
        argv = [*_as_account(self.account), *self.argv]
        with self.output.open("wb") as output:
            subprocess.run(
                ["setsid", "--fork", "sh", "-c", _BECOME, "sh", str(self.record), *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"PATH": _PATH, "LANG": "C.UTF-8", **self.environment},
                check=True,
                timeout=10,
            )
        if not until(self.record.exists, timeout=10, pause=0.01):
            raise BedError(f"{self.name} was not started: {self._last_words()}", hint=self._look())

    def _last_words(self) -> str:
        for path in (self.log, self.output):
            if path is not None and path.exists():
                lines = path.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
                if lines:
                    return "\n  ".join([f"the end of {path} is", *lines])
        return "it said nothing"

    def _look(self) -> str:
        return f"its output is in {self.output}" + (f", its log in {self.log}" if self.log else "")


def listens(port: int) -> bool:
    """Whether something listens on that port. It is not called, so it logs no stray caller."""
    local = f":{port:04X}"
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        rows = table.read_text().splitlines()[1:] if table.exists() else []
        if any(row.split()[1].endswith(local) and row.split()[3] == _LISTEN for row in rows):
            return True
    return False


def _port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _as_account(account: str | None) -> list[str]:
    if account is None:
        return []
    groups = "--clear-groups" if account == "nobody" else "--init-groups"
    group = "nogroup" if account == "nobody" else account
    return ["setpriv", f"--reuid={account}", f"--regid={group}", groups]
