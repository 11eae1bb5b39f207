"""Room on a disk: asked for before the first byte is written; and whether a "disk" is really memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_IN_MEMORY = ("tmpfs", "ramfs")
_MOUNTS = Path("/proc/self/mountinfo")


def fallocate(handle: int, size: int) -> None:
    """The raw system call. glibc's posix_fallocate writes every byte where a file system cannot reserve: 500 GB on NFS, twice."""
    try:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).fallocate
    except (ImportError, AttributeError):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP)) from None
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    while call(handle, 0, 0, size):
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def reserve(target: Path, size: int) -> None:
    """Make an empty file that has this much room. Only an allocation knows quotas; where there is none, nothing is reserved."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        if size:
            fallocate(handle, size)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
    finally:
        os.close(handle)


def free_bytes(folder: Path) -> int | None:
    """Bytes that an ordinary user can still write there; None where the file system does not say."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        stats = os.statvfs(folder)
    except OSError:
        return None
    return stats.f_bavail * stats.f_frsize if stats.f_blocks else None


def check_room(folder: Path, need: int) -> None:
    """Raises ENOSPC where the file system itself says that there is not enough room."""
    left = free_bytes(folder)
    if left is not None and left < need:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def is_in_memory(folder: Path, *, mounts: Path = _MOUNTS) -> bool:
    """Whether files there are held in memory (tmpfs, ramfs), which a job pays for with its own."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        device = folder.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    for line in lines:
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [wanted]:
            return right.split()[:1] in [[kind] for kind in _IN_MEMORY]
    return False
