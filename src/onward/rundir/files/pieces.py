"""Files that come a piece at a time: those that grow are appended to, those that are replaced are there when they are whole.

A piece is known by where it begins, so it may come twice, and whoever sends asks where to go on. What is told to be there is on disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Sequence

from onward.errors import Conflict, TooLarge
from onward.rundir.files.artifacts import ArtifactFiles, StoredFile, components, kind_of, plain_file_errors
from onward.sdk.atomic_files import PART


def append(files: ArtifactFiles, path: str, offset: int, data: bytes) -> int:
    """Add to a file that grows; its size then. What it has is passed over; what would leave a gap is not taken."""
    *folders, name = components(path)
    with plain_file_errors(path):
        return _append(files, folders, name, offset, data)


def gather(files: ArtifactFiles, path: str, offset: int, data: bytes, *, size: int, modified: int) -> tuple[int, StoredFile | None]:
    """The same for a file that is replaced, known by its size and when it was changed (nanoseconds). The file, when this made it whole."""
    *folders, name = components(path)
    mine = f".{hashlib.sha256(name.encode()).hexdigest()[:24]}-"
    part = f"{mine}{modified}-{size}{PART}"
    with plain_file_errors(path):
        if _is_there(files, folders, name, size, modified):
            return size, None
        have = _append(files, folders, part, offset, data[: max(size - offset, 0)])
        if have < size or offset > size:
            return have, None
        with files.inside(folders, make=True) as handle:
            return size, _complete(files, handle, [*folders, name], part, modified, mine)


def _append(files: ArtifactFiles, folders: Sequence[str], name: str, offset: int, data: bytes) -> int:
    try:
        with files.inside(folders, make=bool(data)) as handle:
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_CREAT if data else 0)
            file = os.open(name, flags, files.file_mode, dir_fd=handle)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # the same piece may come twice at once
        size = os.fstat(file).st_size
        rest = memoryview(data)[size - offset :] if offset <= size else memoryview(b"")
        end = size + len(rest)
        if rest and files.largest is not None and end > files.largest:
            raise TooLarge(f"a file has {end} bytes or more; at most {files.largest} are accepted here")
        while rest:
            rest = rest[os.pwrite(file, rest, end - len(rest)) :]
        if end > size:
            os.fsync(file)
        return end
    finally:
        os.close(file)


def _is_there(files: ArtifactFiles, folders: Sequence[str], name: str, size: int, modified: int) -> bool:
    with contextlib.suppress(FileNotFoundError), files.inside(folders) as handle:
        seen = os.stat(name, dir_fd=handle, follow_symlinks=False)
        return (seen.st_size, seen.st_mtime_ns) == (size, modified)
    return False


def _complete(files: ArtifactFiles, handle: int, parts: Sequence[str], part: str, modified: int, mine: str) -> StoredFile:
    if kind_of(handle, parts[-1]) not in (None, "file"):
        raise Conflict(f"{'/'.join(parts)} is a folder or a link; a file cannot replace it")
    file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, files.file_mode, dir_fd=handle)
    with os.fdopen(file, "rb") as reading:
        digest = hashlib.file_digest(reading, "sha256").hexdigest()
        size = os.fstat(file).st_size
        os.utime(file, ns=(modified, modified))
    os.rename(part, parts[-1], src_dir_fd=handle, dst_dir_fd=handle)
    for left in os.listdir(handle):
        if left.startswith(mine):  # of a content that came no further
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left, dir_fd=handle)
    os.fsync(handle)
    return StoredFile(path="/".join(parts), size=size, modified=modified / 1e9, sha256=digest)
