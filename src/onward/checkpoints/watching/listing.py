"""One look into a checkpoint folder: its entries by one scan, the files of an entry with size and time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from onward.checkpoints.manifest import link_within
from onward.checkpoints.watching import file_names

FileVersion = tuple[str, int, int]  # name relative to the folder, size, time of the last write in nanoseconds
Fingerprint = tuple[FileVersion, ...]


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """By name, without what is hidden or unfinished. This looks at no file."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not file_names.unfinished(entry.name)), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def files(entry: os.DirEntry[str], links: dict[str, str]) -> list[FileVersion]:
    """The files of an entry but its logs: itself, or all within. What goes away meanwhile is not there. `links` takes where links lead."""
    if entry.is_dir(follow_symlinks=False):
        return [seen for seen in within(entry.path, entry.name, links) if not file_names.is_log(seen[0].rpartition("/")[2])]
    found = None if file_names.is_log(entry.name) else _one(entry, entry.name, links)
    return [found] if found else []


def within(path: str, name: str, links: dict[str, str]) -> Iterator[FileVersion]:
    """All files beneath a folder."""
    try:
        with os.scandir(path) as found:
            inside = list(found)
    except OSError:
        return
    for entry in inside:
        below = f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from within(entry.path, below, links)
        elif seen := _one(entry, below, links):
            yield seen


def _one(entry: os.DirEntry[str], name: str, links: dict[str, str]) -> FileVersion | None:
    """A file, through a link too; a link to a neighbouring folder (`latest -> step-100`) as such. A link to nowhere is nothing."""
    try:
        found = entry.stat()
        if stat.S_ISDIR(found.st_mode) and link_within(os.readlink(entry.path)):
            found = entry.stat(follow_symlinks=False)
        elif not stat.S_ISREG(found.st_mode):
            return None
        if entry.is_symlink():
            links[name] = os.path.realpath(entry.path)
    except OSError:
        return None
    return name, found.st_size, found.st_mtime_ns
