"""A bounded look into a training's working folder: which files there look like its state, and their versions."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from onward.supervisor.own_files.state_names import is_skipped, looks_like_state

MOST_ENTRIES = 1_000  # that one look goes through
_DEEPEST = 4  # folders below the working folder

FileStamp = tuple[int, int, int]  # size, time of the last write in nanoseconds, inode


@dataclass(kw_only=True)
class FolderListing:
    files: dict[str, FileStamp] = field(default_factory=dict)  # by name relative to the folder
    links: list[str] = field(default_factory=list)  # relative to the folder
    entries: int = 0  # that it went through
    operations: int = 0  # that it cost the storage


def list_state_files(folder: Path, *, most: int = MOST_ENTRIES) -> FolderListing:
    """Folders nearest to it first. What is behind links is not looked at."""
    found = FolderListing()
    todo: deque[tuple[str, int]] = deque([("", 0)])
    while found.entries < most and todo:
        below, depth = todo.popleft()
        found.operations += 1
        try:
            with os.scandir(folder / below) as entries:
                for entry in entries:
                    if found.entries >= most:
                        break
                    found.entries += 1
                    name = f"{below}/{entry.name}" if below else entry.name
                    if entry.is_symlink():
                        if not is_skipped(entry.name):
                            found.links.append(name)
                    elif entry.is_dir(follow_symlinks=False):
                        if depth < _DEEPEST and not is_skipped(entry.name):
                            todo.append((name, depth + 1))
                    elif entry.is_file(follow_symlinks=False) and looks_like_state(name):
                        found.operations += 1
                        found.files |= stamps([name], folder)
        except OSError:
            continue  # gone, or not ours to look at
    return found


def stamps(names: Iterable[str], folder: Path) -> dict[str, FileStamp]:
    """Of those that are there and are files, not links to some. A name may be absolute."""
    found = {}
    for name in names:
        try:
            seen = os.lstat(folder / name)
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode):
            found[name] = (seen.st_size, seen.st_mtime_ns, seen.st_ino)
    return found
