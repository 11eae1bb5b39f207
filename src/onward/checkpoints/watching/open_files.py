"""Which files our processes hold open for writing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def open_for_writing(folder: Path, *, elsewhere: Collection[str] = ()) -> frozenset[str]:
    """The real paths beneath this folder, or among those elsewhere, that a process of ours has open for writing.

    One pass over our own processes, whatever the number of files. Where it cannot be told: none.
    """
    base = os.path.realpath(folder) + "/"
    return frozenset(path for process in _processes(os.geteuid()) for path in _written_by(process, base, elsewhere))


def opened_by(processes: Iterable[int]) -> frozenset[str]:
    """The real paths of all files that these processes have open for writing."""
    return frozenset(path for process in processes for path in _written_by(f"/proc/{process}", "/", ()) if not path.endswith(" (deleted)"))


def _processes(user: int) -> Iterator[str]:
    try:
        with os.scandir("/proc") as found:
            numbered = [entry for entry in found if entry.name.isdigit()]
    except OSError:
        return
    for entry in numbered:
        try:
            if entry.stat().st_uid == user:
                yield entry.path
        except OSError:
            continue  # gone


def _written_by(process: str, base: str, elsewhere: Collection[str]) -> Iterator[str]:
    try:
        descriptors = os.listdir(f"{process}/fd")
    except OSError:  # gone, or not ours to look at
        return
    for descriptor in descriptors:
        try:
            path = os.readlink(f"{process}/fd/{descriptor}")
            if (path.startswith(base) or path in elsewhere) and _writes(process, descriptor):
                yield path
        except OSError:  # closed meanwhile
            continue


def _writes(process: str, descriptor: str) -> bool:
    with open(f"{process}/fdinfo/{descriptor}") as lines:
        flags = next((int(line.split()[1], 8) for line in lines if line.startswith("flags:")), os.O_RDWR)
    return bool(flags & (os.O_WRONLY | os.O_RDWR))
