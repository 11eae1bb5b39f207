"""Who looks after a leg's folder on a node: a mark in it, by which others can tell that its process has gone."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.sdk.atomic_files import write_whole

OWNER = "owner.json"
_LOOK_SECONDS = 0.05


def mark_as_own(folder: Path, *, run: Path | None = None) -> None:
    """Say that this process looks after the folder, and which run's folder what it holds belongs to."""
    owner = identity()
    if run:
        owner["run"] = str(run)
    write_whole(folder / OWNER, json.dumps(owner))


def identity() -> dict[str, Any]:
    """What tells this process from every other, also after its number has been given to another."""
    return {
        "pid": os.getpid(),
        "machine": socket.gethostname(),
        "boot": _boot(),
        "started": _started(os.getpid()),
        "namespace": _namespace(),
    }


def is_this_process(mark: Mapping[str, Any]) -> bool:
    """Whether the process of this mark surely is the one that has its number now, here."""
    here = {"machine": socket.gethostname(), "boot": _boot(), "namespace": _namespace()}
    if not isinstance(mark.get("pid"), int) or any(mark.get(name) != value for name, value in here.items()):
        return False
    return bool(mark.get("started")) and _started(mark["pid"]) == mark["started"]


def owner_of(folder: Path) -> Mapping[str, Any] | None:
    """The mark; None where there is none, or none that can be read."""
    try:
        owner = json.loads((folder / OWNER).read_bytes())
    except (OSError, ValueError):
        return None
    return owner if isinstance(owner, dict) else None


def surely_gone(mark: Mapping[str, Any]) -> bool:
    """Whether the process that looked after a folder is no more. What cannot be told from here is not gone."""
    if mark.get("machine") != socket.gethostname():
        return False
    if mark.get("boot") and _boot() and mark["boot"] != _boot():
        return True
    if mark.get("namespace") and mark["namespace"] != _namespace():
        return False  # another container's: its numbers mean nothing here
    try:
        pid = int(mark["pid"])
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError, TypeError):
        return False
    if _is_dead(pid):
        return True
    started = _started(pid)
    return bool(mark.get("started") and started and started != mark["started"])  # the number is another process's by now


def gone_in_time(mark: Mapping[str, Any], *, patience: float) -> bool:
    """The same for one whose scheduler says that it has ended: it may hang in the kernel for a moment more, with its storage."""
    until = time.monotonic() + patience
    while not (gone := surely_gone(mark)) and is_this_process(mark) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    return gone


def _is_dead(pid: int) -> bool:
    """It has ended, and nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (OSError, IndexError):
        return False


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> int:
    """In clock ticks since the machine started; 0 where that is not known."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
