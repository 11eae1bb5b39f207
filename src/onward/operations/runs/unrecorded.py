"""What was asked of a run cannot be written down: its disk is full, read-only or failing. In words that a person can act on."""

from __future__ import annotations

import errno
from pathlib import Path

from onward.errors import StorageError

_TROUBLE = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full (quota)",
    errno.EROFS: "is read-only",
    errno.EIO: "cannot be written (I/O error)",
}


def unrecorded(error: OSError, disk: Path, *, left: str, again: str, done: str = "") -> StorageError:
    """What was `done` all the same, what is `left`, and the command to run `again`. Any other error is raised as it is."""
    if error.errno not in _TROUBLE:
        raise error
    message = f"{f'{done}, but ' if done else ''}the disk of {disk} {_TROUBLE[error.errno]}, so {left}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(message, hint=f"free some space, then run {again} again")
    return StorageError(message, hint=f"run {again} again when the disk can be written")
