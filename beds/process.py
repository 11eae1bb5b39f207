"""A process, named so that it cannot be mistaken for a later one with the same number."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from beds.waiting import until

_DEAD = frozenset("ZX")  # whoever is process 1 may be slow to reap: a zombie is dead


@dataclass(frozen=True)
class Process:
    """Process number, start time in clock ticks since boot, and which boot that was."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The process that has this number now."""
        stat = _stat(pid)
        return None if stat is None else cls(pid, stat[1], boot_id())

    @classmethod
    def parse(cls, record: str) -> "Process | None":
        """Read `pid start-time boot-id`, as a daemon's record holds it."""
        match record.split():
            case [pid, started, boot] if pid.isdigit() and started.isdigit():
                return cls(int(pid), int(started), boot)
        return None

    @property
    def state(self) -> str | None:
        """The letter the kernel shows (R, S, T, Z ...), or None if this process is gone."""
        stat = _stat(self.pid)
        if stat is None or stat[1] != self.started or self.boot != boot_id():
            return None
        return stat[0]

    @property
    def alive(self) -> bool:
        state = self.state
        return state is not None and state not in _DEAD

    @property
    def age(self) -> float:
        """Seconds since it started."""
        return float(Path("/proc/uptime").read_text().split()[0]) - self.started / os.sysconf("SC_CLK_TCK")

    @property
    def paused(self) -> bool:
        return self.state == "T"

    @property
    def command(self) -> str:
        """Its command line, or its short name where it shows none; for messages."""
        try:
            line = Path(f"/proc/{self.pid}/cmdline").read_bytes()
            name = Path(f"/proc/{self.pid}/comm").read_text(errors="replace")
        except OSError:
            return "?"
        return line.replace(b"\0", b" ").decode(errors="replace").strip() or name.strip()

    @property
    def environment(self) -> dict[str, str]:
        """The environment it was started with; empty if it is gone or not ours to read."""
        try:
            raw = Path(f"/proc/{self.pid}/environ").read_bytes().decode(errors="replace")
        except OSError:
            return {}
        pairs = (entry.partition("=") for entry in raw.split("\0") if "=" in entry)
        return {name: value for name, _, value in pairs}

    @property
    def open_files(self) -> set[str]:
        """The paths it has open; empty if it is gone or not ours to read."""
        try:
            return {str(link.readlink()) for link in Path(f"/proc/{self.pid}/fd").iterdir()}
        except OSError:
            return set()

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to exactly this process; False if it is gone."""
        try:
            handle = os.pidfd_open(self.pid)  # from here on the number cannot pass to another
        except (ProcessLookupError, OSError):
            return False
        try:
            if not self.alive:
                return False
            signal.pidfd_send_signal(handle, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)

    def wait_gone(self, timeout: float) -> bool:
        return until(lambda: not self.alive, timeout=timeout, pause=0.02)


def all_processes() -> list[Process]:
    """Every process of the machine that this user can see."""
    numbers = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [found for found in map(Process.of, numbers) if found is not None]


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start time, fields 3 and 22 of /proc/PID/stat."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold blanks and brackets
    return fields[0], int(fields[19])
