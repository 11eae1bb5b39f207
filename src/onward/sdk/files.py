"""Files that are whole or not there: write beside, flush, rename. Used by everything that others may read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def write_whole(path: Path, data: bytes | str, *, mode: int = 0o644) -> None:
    """Make `path` hold `data`, all of it or nothing new, whatever dies and whenever."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        try:
            write_all(handle, data.encode() if isinstance(data, str) else data)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def same_file(source: Path, target: Path) -> None:
    """A file that never changes, under one name more; a copy of it where the disk is another."""
    try:
        os.link(source, target)
    except FileExistsError:
        pass
    except OSError:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def write_all(handle: int, data: bytes) -> None:
    """`os.write` until nothing is left: one call may take less than it was given."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder last. Some network file systems refuse; their rename lasts without."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
