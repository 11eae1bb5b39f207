"""What the host and the training use, read from /proc and the job's cgroup. Where a figure cannot be had it is left out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MIB = 1 << 20


class HostSampler:
    """`sessions` are those of the training on this node, which may come and go. CPU use is told over the time since the last sample."""

    def __init__(self, *, sessions: Callable[[], Iterable[int]], disk: Path) -> None:
        self._sessions = sessions
        self._disk = disk
        self._before: tuple[float, float] | None = None
        self._folders = _memory_cgroups()
        self.peak_rss = 0  # MiB

    def sample(self, now: float) -> dict[str, float]:
        rss, cpu = 0, 0.0
        for pid in session_processes(*self._sessions()):
            usage = _usage(pid)
            rss += usage[0]
            cpu += usage[1]
        self.peak_rss = max(self.peak_rss, rss // _MIB)
        values = {"system/rss_mib": float(rss // _MIB)}
        if self._before:
            elapsed = now - self._before[0]
            if elapsed > 0:
                values["system/cpu_percent"] = round(100 * max(cpu - self._before[1], 0.0) / elapsed, 1)
        self._before = (now, cpu)
        values.update(_memory())
        values.update(_memory_split(self._folders[::-1]))  # the job's before our own step's: ranks have steps of theirs
        try:
            values["system/load_1m"] = round(os.getloadavg()[0], 2)
            values["system/disk_free_mib"] = float(shutil.disk_usage(self._disk).free // _MIB)
        except OSError:
            pass
        return values


def session_processes(*sessions: int) -> list[int]:
    """All processes of these sessions, and those that their members started in sessions of their own."""
    parents: dict[int, int] = {}
    members: set[int] = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if not name.isdigit():
            continue
        fields = _stat(int(name))
        if fields:
            parents[int(name)] = int(fields[1])
            if int(fields[3]) in sessions:
                members.add(int(name))
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in members and pid not in members}
        members |= more
        grown = bool(more)
    return sorted(members)


class MemoryWatch:
    """Whether the kernel killed anything of this job for its memory, from the cgroup's own counter."""

    def __init__(self) -> None:
        self._folders = _memory_cgroups()
        self._kills = self._count()

    def killed(self) -> bool:
        return self._count() > self._kills

    def peak(self) -> int | None:
        """MiB at the highest, where the cgroup tells."""
        for folder in self._folders:
            for name in ("memory.peak", "memory.max_usage_in_bytes"):
                try:
                    return int((folder / name).read_text()) // _MIB
                except (OSError, ValueError):
                    continue
        return None

    def _count(self) -> int:
        total = 0
        for folder in self._folders:
            for name in ("memory.events", "memory.oom_control"):
                try:
                    lines = (folder / name).read_text().splitlines()
                except OSError:
                    continue
                total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        return total


def _memory_cgroups() -> list[Path]:
    """Our own memory cgroup first, then those above it that belong to the same job. The machine's root tells nothing of us."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            base = Path("/sys/fs/cgroup/memory")
        elif not controllers:
            base = Path("/sys/fs/cgroup")
        else:
            continue
        own = base / path.lstrip("/")
        if path != "/" and own.is_dir() and any((own / name).exists() for name in ("memory.events", "memory.oom_control")):
            return [own, *(parent for parent in own.parents if parent != base and base in parent.parents and "job" in parent.name)]
    return []


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the name: state, parent, group, session …"""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rfind(")") + 2 :].split()


def _usage(pid: int) -> tuple[int, float]:
    fields = _stat(pid)
    if not fields or len(fields) < 22:
        return 0, 0.0
    return int(fields[21]) * _PAGE, (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_split(folders: list[Path]) -> dict[str, float]:
    """Of the job's cgroup: memory of its own, and the page cache that it is charged for, which gives way when room is needed."""
    for folder in folders:
        try:
            rows = dict(line.split(maxsplit=1) for line in (folder / "memory.stat").read_text().splitlines())
            anon, cache = rows.get("anon", rows.get("total_rss")), rows.get("file", rows.get("total_cache"))
            if anon is not None and cache is not None:
                return {"system/mem_anon_mib": float(int(anon) // _MIB), "system/mem_cache_mib": float(int(cache) // _MIB)}
        except (OSError, ValueError):
            continue
    return {}


def _memory() -> dict[str, float]:
    try:
        rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(rows[key].split()[0]) // 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return {}
    return {"system/host_mem_used_mib": float(total - free), "system/host_mem_total_mib": float(total)}
