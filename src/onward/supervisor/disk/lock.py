"""One at a time in a leg's folder on a node: its publisher for as long as it lives, or whoever carries over what it left.

The lock goes with its process. It lies in the folder, with a note of who holds it, so that a publisher which hangs can be ended by
whoever comes next.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onward.sdk.atomic_files import write_all
from onward.supervisor.disk.owner import identity, is_this_process

LOCK = "publisher.lock"
_LOOK_SECONDS = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # a disk that knows none: then the owner's mark has to do


@contextmanager
def locked_folder(folder: Path, *, patience: float = 0.0, end_holder: bool = False) -> Iterator[bool]:
    """Whether the folder is ours until the end of the block. Waits `patience` seconds for it; `end_holder`: then the process that
    holds it is killed, and waited for as long again. False also where the folder has gone."""
    handle = _take(folder, patience)
    if handle is None and end_holder and _end_holder(folder):
        handle = _take(folder, patience)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _take(folder: Path, patience: float) -> int | None:
    until = time.monotonic() + patience
    while True:
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(folder / LOCK)):  # else the one before us took the folder away
                os.ftruncate(handle, 0)
                with contextlib.suppress(OSError):  # a full disk: then nobody can end us by it
                    write_all(handle, json.dumps(identity()).encode())
                return handle
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return handle
            if not isinstance(error, BlockingIOError | FileNotFoundError):
                os.close(handle)
                raise
        os.close(handle)
        if time.monotonic() >= until:
            return None
        time.sleep(_LOOK_SECONDS)


def _end_holder(folder: Path) -> bool:
    """Kill the process that holds the lock, if it is surely the one that wrote the note."""
    try:
        mark = json.loads((folder / LOCK).read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(mark, dict) or not is_this_process(mark):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(int(mark["pid"]), signal.SIGKILL)
    return True
