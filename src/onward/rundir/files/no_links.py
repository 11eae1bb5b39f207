"""Open files below a root without following links.

A runs folder is shared: whoever may create a run there may also create a link. So a path is taken apart, and each component is opened
from the handle of the folder above it, with O_NOFOLLOW. The root itself is trusted and may be a link. What is opened as a file is a
regular file: a pipe would block its reader, and a device may be anything.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LARGEST = 256 << 20  # bytes of a file that is read as a whole
_PIECE = 1 << 16  # bytes, for a file that grows while it is read


class LinkRefused(OSError):
    """There is a link where a folder or a file should be."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "it is a link, and links below the runs folder are not followed", path)


class NotAFile(OSError):
    """There is something else where a file should be."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", path)


@contextlib.contextmanager
def open_folder_beneath(root: Path, path: Path, *, make: bool = False, mode: int = 0o777) -> Iterator[int]:
    """A handle of the folder `path`, which lies below `root` or is it. With `make`, folders that are missing are made."""
    parts = _parts(root, path)
    if make:
        root.mkdir(parents=True, exist_ok=True, mode=mode)
    handle = os.open(root, (_THROUGH if parts else _LIST) & ~os.O_NOFOLLOW)
    try:
        for number, name in enumerate(parts, 1):
            inner = _enter(handle, name, root.joinpath(*parts[:number]), last=number == len(parts), make=make, mode=mode)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _enter(handle: int, name: str, path: Path, *, last: bool, make: bool, mode: int) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=handle)
    try:
        return os.open(name, _LIST if last else _THROUGH, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and is_link(handle, name):
            raise LinkRefused(str(path)) from None
        error.filename = str(path)
        raise


def is_link(handle: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_at(handle: int, name: str, path: Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """A regular file of the folder that the handle is of. `path`: for messages."""
    try:
        file = os.open(name, flags | _FILE, mode, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise LinkRefused(str(path)) from None
        if error.errno == errno.ENXIO:  # a pipe without a reader, or a socket
            raise NotAFile(str(path)) from None
        error.filename = str(path)
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NotAFile(str(path))
    return file


def open_beneath(root: Path, path: Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """The handle of a regular file below `root`."""
    with open_folder_beneath(root, path.parent) as handle:
        return open_at(handle, path.name, path, flags, mode)


def reading(root: Path, path: Path) -> BinaryIO:
    return os.fdopen(open_beneath(root, path), "rb")


def read_beneath(root: Path, path: Path, *, most: int = LARGEST) -> bytes:
    """The whole file. One that is larger than `most` is an error, not a full memory."""
    with reading(root, path) as file:
        return read_whole(file, path, most=most)


def read_whole(file: BinaryIO, path: Path, *, most: int = LARGEST) -> bytes:
    """Asked for by its size: a read of `most` bytes would reserve them first, and a job may have little memory."""
    pieces, total = [], 0
    while piece := file.read(max(_PIECE, min(most, os.fstat(file.fileno()).st_size - total) + 1)):
        pieces.append(piece)
        total += len(piece)
        if total > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def names_beneath(root: Path, path: Path) -> list[str]:
    with open_folder_beneath(root, path) as handle:
        return os.listdir(handle)


def walk_beneath(
    root: Path, folder: Path, *, skip: tuple[str, ...] = (), unread: Callable[[OSError], object] = lambda _: None
) -> Iterator[tuple[str, os.stat_result | None]]:
    """All below a folder, by paths relative to it, upper folders first. Only files have a stat; the path of a folder ends with a slash.

    `skip`: names of folders that are left out. `unread` is told of each folder that cannot be read.
    """
    todo = deque([""])
    while todo:
        at = todo.popleft()
        try:
            with open_folder_beneath(root, folder / at) as handle, os.scandir(handle) as entries:
                for entry in entries:
                    path = f"{at}/{entry.name}" if at else entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        yield path, stat_at(handle, entry.name)
                    elif entry.name not in skip:
                        todo.append(path)
                        yield f"{path}/", None
        except OSError as error:
            unread(error)


def stat_at(handle: int, name: str) -> os.stat_result | None:
    """Of a regular file of the folder that the handle is of; None where there is none."""
    try:
        seen = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return None
    return seen if stat.S_ISREG(seen.st_mode) else None


def stat_beneath(root: Path, path: Path) -> os.stat_result:
    """Of a link: the link's own."""
    with open_folder_beneath(root, path.parent) as handle:
        return os.stat(path.name, dir_fd=handle, follow_symlinks=False)


def _parts(root: Path, path: Path) -> tuple[str, ...]:
    parts = path.relative_to(root).parts
    if ".." in parts:
        raise ValueError(f"{path} leads outside {root}")
    return parts
