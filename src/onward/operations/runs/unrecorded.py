"""What was asked of a run cannot be written down: its disk is full, read-only or failing. In words that a person can act on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from onward.errors import StorageError

_TROUBLE = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full (quota)",
    errno.EROFS: "is read-only",
    errno.EIO: "cannot be written (I/O error)",
}


def disk_trouble(error: OSError, disk: Path) -> str:
    """Of any error: what is wrong with the disk, or the error's own words."""
    return f"the disk of {disk} {_TROUBLE[error.errno]}" if error.errno in _TROUBLE else str(error)


def full_disk(disk: Path) -> str:
    """Whether it is full or read-only, in words, from one look at it; empty where it is not, and where it cannot be told."""
    try:
        seen = os.statvfs(disk)
    except OSError:
        return ""
    if seen.f_flag & os.ST_RDONLY:
        return disk_trouble(OSError(errno.EROFS, ""), disk)
    full = (seen.f_blocks and not seen.f_bavail) or (seen.f_files and not seen.f_favail)
    return disk_trouble(OSError(errno.ENOSPC, ""), disk) if full else ""


def unrecorded(error: OSError, disk: Path, *, left: str, again: str, done: str = "") -> StorageError:
    """What was `done` all the same, what is `left`, and the command to run `again`. Any other error is raised as it is."""
    if error.errno not in _TROUBLE:
        raise error
    message = f"{f'{done}, but ' if done else ''}{disk_trouble(error, disk)}, so {left}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(message, hint=f"free some space, then run {again} again")
    return StorageError(message, hint=f"run {again} again when the disk can be written")
