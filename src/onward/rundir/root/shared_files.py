"""Files that many runs of a root have alike, stored once: each run has the file under a name of its own (a hard link).

So a run's folder can be copied, moved and removed as ever, and nothing that happens to the shared name reaches a run. A user shares with
nobody but himself: what another could change must not be run. Where a hard link cannot be made, the run gets a copy.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

from onward.sdk.atomic_files import sync_folder, write_whole


def write_shared(folder: Path, content: bytes, target: Path) -> None:
    """Make `target` hold this content, which never changes; `folder` keeps the name that is shared."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"{os.getuid()}-{hashlib.sha256(content).hexdigest()[:32]}{target.suffix}"
        identity = _identity_of_same(kept, content)
        if identity is None:
            write_whole(kept, content)
            identity = _identity_of_same(kept, content)
        _link(kept, target, identity)
    except OSError:
        write_whole(target, content)


def newest_shared(folder: Path, suffix: str) -> bytes:
    """The content of this user's newest file with this suffix; empty where there is none."""
    try:
        found = {entry.path: entry.stat(follow_symlinks=False).st_mtime_ns for entry in os.scandir(folder) if entry.name.endswith(suffix)}
    except OSError:
        return b""
    own = [path for path in found if os.path.basename(path).startswith(f"{os.getuid()}-")]
    read = _read_own(Path(max(own, key=found.__getitem__))) if own else None
    return read[1] if read else b""


def unused_files(folder: Path) -> list[Path]:
    """This user's files in the folder that no run has any more."""
    try:
        found = [Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(path for path in found if (seen := path.lstat()).st_nlink == 1 and seen.st_uid == os.getuid())


def _link(kept: Path, target: Path, identity: tuple[int, int] | None) -> None:
    try:
        os.link(kept, target, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EMLINK:
            kept.unlink()  # it has as many names as the file system allows: the next run begins another
        raise
    seen = os.stat(target, follow_symlinks=False)
    if (seen.st_dev, seen.st_ino) != identity:  # somebody else put another file there meanwhile
        raise OSError(errno.ESTALE, "another file has replaced it", str(kept))
    sync_folder(target.parent)


def _identity_of_same(path: Path, content: bytes) -> tuple[int, int] | None:
    read = _read_own(path, size=len(content))
    return read[0] if read and read[1] == content else None


def _read_own(path: Path, *, size: int | None = None) -> tuple[tuple[int, int], bytes] | None:
    """Identity and content of a regular file of this user's that nobody else may write."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, "rb") as file:
        seen = os.fstat(handle)
        own = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return ((seen.st_dev, seen.st_ino), file.read()) if own and size in (None, seen.st_size) else None
