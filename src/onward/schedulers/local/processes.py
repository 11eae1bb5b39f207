"""The processes of a job: which they are, how much memory they hold, how they are ended. All from /proc.

A process number alone may be another's tomorrow, so a process is its number, its start time and the boot of both.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onward.model.job import JobId

JOB_ID = "ONWARD_JOB_ID"
JOB_STATE = "ONWARD_JOB_STATE"  # the folder of the queue that runs the job: two queues may count the same numbers

_DEAD = "ZX"  # a process that nobody has reaped yet is dead all the same
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True)
class JobProcess:
    pid: int
    started: int  # clock ticks since boot
    boot: str

    @classmethod
    def of(cls, pid: int) -> JobProcess | None:
        seen = _look(pid)
        return cls(pid=pid, started=seen.started, boot=boot_id()) if seen else None

    @classmethod
    def parse(cls, text: str) -> JobProcess | None:
        """From a line of /proc/PID/stat and the boot's name: what a job's wrapper and the keeper write about themselves."""
        line, _, boot = text.strip().partition("\n")
        seen = _parse(line)
        return cls(pid=int(line.split(maxsplit=1)[0]), started=seen.started, boot=boot.strip()) if seen and boot else None

    @property
    def before_this_boot(self) -> bool:
        return self.boot != boot_id()

    @property
    def alive(self) -> bool:
        seen = None if self.before_this_boot else _look(self.pid)
        return seen is not None and seen.started == self.started

    def send(self, number: signal.Signals) -> None:
        """To this very process; one that is gone, or is not ours to end, is left."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def describe_self() -> str:
    """What `Process.parse` reads."""
    return Path(f"/proc/{os.getpid()}/stat").read_text() + boot_id() + "\n"


def job_processes(state: Path, roots: Mapping[JobId, JobProcess | None]) -> dict[JobId, list[JobProcess]]:
    """All living processes of each job, in one pass: by session, and by environment also those that left the session.

    `roots` are the jobs' first processes, which lead their sessions.
    """
    found: dict[JobId, list[JobProcess]] = {job: [] for job in roots}
    sessions = {root.pid: job for job, root in roots.items() if root is not None and not _number_reused(root)}
    mark = f"{JOB_STATE}={state}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdecimal() or int(entry) == os.getpid():
            continue
        seen = _look(int(entry))
        if seen is None:
            continue
        job = sessions.get(seen.session) or _job_by_environment(entry, mark)
        if job in found:
            found[job].append(JobProcess(pid=int(entry), started=seen.started, boot=boot_id()))
    return found


def memory_held(processes: Iterable[JobProcess], *, limit: int) -> int:
    """MiB. Pages that processes share are counted once each, unless the plain sum is below the limit anyway: that is cheaper."""
    pids = [process.pid for process in processes]
    plain = sum(_resident(pid) for pid in pids)
    if plain <= limit * 2**20:
        return plain // 2**20
    return sum(_proportional(pid) for pid in pids) // 2**20


# ── reading /proc ─────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Seen:
    session: int
    started: int


def _look(pid: int) -> _Seen | None:
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            return _parse(file.read())
    except OSError:
        return None


def _parse(stat: str) -> _Seen | None:
    fields = stat.rpartition(")")[2].split()  # the name before it may hold blanks and brackets
    if len(fields) < 20 or fields[0] in _DEAD:
        return None
    return _Seen(session=int(fields[3]), started=int(fields[19]))


def _number_reused(root: JobProcess) -> bool:
    """A session's number stays taken while it has members; another process under that number shows that it has none."""
    seen = _look(root.pid)
    return root.before_this_boot or (seen is not None and seen.started != root.started)


def _job_by_environment(pid: str, mark: bytes) -> JobId | None:
    folder = Path("/proc", pid)
    try:
        if folder.stat().st_uid != os.getuid():
            return None
        variables = (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    if mark not in variables:
        return None
    key = f"{JOB_ID}=".encode()
    return next((JobId(variable.removeprefix(key).decode()) for variable in variables if variable.startswith(key)), None)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return _resident(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
