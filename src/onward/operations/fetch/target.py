"""The folder here that a run's files are copied into: each is written beside, then renamed. Nothing is written outside it, and no link in
it is followed. What was cut off is kept with the file's size and time in its name, so that the next fetch goes on from there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from onward.errors import Conflict, InvalidInput, StorageError, StorageFull
from onward.operations.fetch.result_files import RunFile
from onward.rundir.files.no_links import LinkRefused, open_at, open_folder_beneath, stat_at
from onward.sdk.atomic_files import PART

_UNFINISHED = f".fetch{PART}"  # in the folder; no result has this name
_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000


class FetchFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._parts = self.path / _UNFINISHED

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """By one fetch at a time. Where locks are not to be had, without one."""
        with self._plain_errors(str(self.path)), open_folder_beneath(self.path, self._parts, make=True) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict(f"another fetch writes to {self.path}", hint="wait for its end, or choose another folder by --to") from None
            except OSError:
                pass
            yield

    def has(self, file: RunFile) -> bool:
        """A file of this size and time. Some file systems keep no fractions of a second."""
        *folders, name = safe_parts(file.path)
        try:
            with open_folder_beneath(self.path, self.path.joinpath(*folders)) as handle:
                seen = stat_at(handle, name)
        except OSError:
            return False
        if seen is None or seen.st_size != file.size:
            return False
        coarse = seen.st_mtime_ns % _SECOND == 0
        return abs(seen.st_mtime_ns - file.modified) < (_SECOND if coarse else _MILLISECOND)

    def begun(self, file: RunFile) -> int:
        """How much of it an earlier fetch has left here."""
        try:
            with open_folder_beneath(self.path, self._parts) as handle:
                seen = stat_at(handle, _part_name(file))
                return seen.st_size if seen and seen.st_size <= file.size else 0
        except OSError:
            return 0

    @contextlib.contextmanager
    def writing(self, file: RunFile, *, at: int) -> Iterator[BinaryIO]:
        """To be written from `at` on. What is written stays if the block raises; `keep` gives it its name."""
        with self._plain_errors(file.path), open_folder_beneath(self.path, self._parts, make=True) as handle:
            number = open_at(handle, _part_name(file), self._parts / file.path, os.O_WRONLY | os.O_CREAT, 0o666)
            with os.fdopen(number, "wb") as part:
                part.truncate(at)
                part.seek(at)
                yield part

    def keep(self, file: RunFile) -> None:
        """It is whole: it gets its time and its name."""
        *folders, name = safe_parts(file.path)
        part = _part_name(file)
        with (
            self._plain_errors(file.path),
            open_folder_beneath(self.path, self._parts) as parts,
            open_folder_beneath(self.path, self.path.joinpath(*folders), make=True) as folder,
        ):
            with os.fdopen(open_at(parts, part, self._parts / part, os.O_RDWR), "rb+") as written:
                os.utime(written.fileno(), ns=(file.modified, file.modified))
                os.fsync(written.fileno())
            if stat_at(folder, name) is None:
                with contextlib.suppress(FileNotFoundError):
                    os.stat(name, dir_fd=folder, follow_symlinks=False)
                    raise Conflict(f"{self.path / file.path} is a folder or a link", hint="remove it, or choose another folder by --to")
            os.rename(part, name, src_dir_fd=parts, dst_dir_fd=folder)

    def tidy(self) -> None:
        """After all is here: unfinished files of versions that are no more."""
        with contextlib.suppress(OSError):
            with open_folder_beneath(self.path, self._parts) as handle:
                for name in os.listdir(handle):
                    os.unlink(name, dir_fd=handle)
            self._parts.rmdir()

    @contextlib.contextmanager
    def _plain_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except LinkRefused as error:
            hint = "remove it, or choose another folder by --to"
            raise Conflict(f"{error.filename} is a link, and fetch does not write through links", hint=hint) from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                hint = "make room and run it again to continue, or choose another folder by --to"
                raise StorageFull(f"no room left in {self.path} for {what}; the files fetched before it are whole", hint=hint) from error
            if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
                hint = "remove it, or choose another folder by --to"
                raise Conflict(f"{error.filename or self.path}: a file is where a folder must be", hint=hint) from error
            hint = "is the disk mounted, and do you have write access?"
            raise StorageError(f"{what} cannot be written to {self.path}: {error.strerror}", hint=hint) from error


def safe_parts(path: str) -> list[str]:
    """Of a path that may come from another machine."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InvalidInput(f"{path!r} is not a path below the run's folder", hint="it is not copied")
    return parts


def _part_name(file: RunFile) -> str:
    key = f"{file.path}\0{file.size}\0{file.modified}".encode(errors="surrogateescape")
    return hashlib.sha256(key).hexdigest()[:32] + PART
