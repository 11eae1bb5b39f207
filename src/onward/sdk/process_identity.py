"""A process as others may find it again: its number means something within one boot, one space of numbers and one start alone."""

from __future__ import annotations

import os
from collections.abc import Mapping


def this_machine() -> dict[str, str]:
    """This machine. `boot` and `space` are empty if the system reports neither."""
    return {"host": os.uname().nodename, "boot": _text("/proc/sys/kernel/random/boot_id"), "space": _space()}


def this_process() -> dict[str, object]:
    """This process."""
    pid = os.getpid()
    return {**this_machine(), "pid": pid, "began": start_ticks(pid)}


def start_ticks(pid: int) -> int | None:
    """When it started, in ticks since boot; None: there is no such process, or it is a zombie."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" else None


def is_alive(process: Mapping[str, object], here: Mapping[str, str]) -> bool | None:
    """Whether the process of this identity exists, as seen on `here`. None: unknown from here."""
    same = here["boot"] and (process.get("boot"), process.get("space")) == (here["boot"], here["space"])
    pid, start = process.get("pid"), process.get("began")
    if not same or not isinstance(pid, int) or not isinstance(start, int):
        return None
    return start_ticks(pid) == start


def user_name() -> str:
    """The user who trains. The variables first: a directory service may be slow."""
    name = os.environ.get("LOGNAME") or os.environ.get("USER")
    if name:
        return name
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return ""


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
