"""Who looks after a leg's folder on a node: a mark in it, by which others can tell that its process has gone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.sdk.atomic_files import write_whole
from onward.sdk.process_identity import start_ticks, this_machine

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
    return {"pid": os.getpid(), "started": start_ticks(os.getpid()) or 0, **_here()}


def is_this_process(mark: Mapping[str, Any]) -> bool:
    """Whether the process of this mark surely is the one that has its number now, here."""
    if not isinstance(mark.get("pid"), int) or any(mark.get(name) != value for name, value in _here().items()):
        return False
    return bool(mark.get("started")) and start_ticks(mark["pid"]) == mark["started"]


def _here() -> dict[str, str]:
    here = this_machine()
    return {"machine": here["host"], "boot": here["boot"], "namespace": here["space"]}


def owner_of(folder: Path) -> Mapping[str, Any] | None:
    """The mark; None where there is none, or none that can be read."""
    try:
        owner = json.loads((folder / OWNER).read_bytes())
    except (OSError, ValueError):
        return None
    return owner if isinstance(owner, dict) else None


def surely_gone(mark: Mapping[str, Any]) -> bool:
    """Whether the process that looked after a folder is no more. What cannot be told from here is not gone."""
    here = _here()
    if mark.get("machine") != here["machine"]:
        return False
    if mark.get("boot") and here["boot"] and mark["boot"] != here["boot"]:
        return True
    if mark.get("namespace") and mark["namespace"] != here["namespace"]:
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
    started = start_ticks(pid)
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
