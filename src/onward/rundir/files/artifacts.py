"""Files of runs: written beside and renamed, read, listed; never outside their folder, whatever their names.

Every name is taken apart into components that are checked one by one, and each is opened relative to the handle of the folder above
it without following links. So it does not matter what a string looks like, or what somebody puts into the folder meanwhile: there is
no way out of it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from onward.errors import Conflict, InvalidInput, NotFound, StorageError, StorageFull, TooLarge
from onward.rundir.files.no_links import LinkRefused, NotAFile, open_at, open_folder_beneath
from onward.sdk.atomic_files import PART

_DEEPEST = 32
_ODD = re.compile(r"[\x00-\x1f\x7f\\#]|%(?:2e|2f|5c|23|00)", re.IGNORECASE)  # the latter: what somebody has encoded once more


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    path: str  # relative, with slashes
    is_dir: bool = False
    size: int = 0
    modified: float = 0.0
    sha256: str = ""  # known when it was just written


def components(path: str) -> list[str]:
    """The parts of a relative path; InvalidInput says which one cannot be."""
    if not path or len(path) > 2048 or path.startswith("/"):
        raise InvalidInput(f"{_short(path)} is not a relative path of a file", hint="name it like plots/loss.png")
    parts = path.split("/")
    if len(parts) > _DEEPEST:
        raise InvalidInput(f"{_short(path)} is more than {_DEEPEST} folders deep")
    for part in parts:
        if not part or part in (".", "..") or _ODD.search(part):
            raise InvalidInput(
                f"{_short(part)} cannot be part of a file's path, in {_short(path)}", hint="no '.', '..', '\\', '#' or control characters"
            )
        if len(part.encode("utf-8", "surrogatepass")) > 200 or not part.isprintable() or part.endswith(PART):
            raise InvalidInput(
                f"{_short(part)} cannot be part of a file's path: too long, or with characters that a file name should not have"
            )
    return parts


def servable(path: str) -> str:
    """The same path without what no address may hold, for files that were named elsewhere."""
    return _ODD.sub("_", path)


class ArtifactFiles:
    """The files under one folder. It is made when the first file comes. `private`: for their owner's eyes alone, whatever the umask."""

    def __init__(self, folder: Path, *, root: Path, largest: int | None = None, private: bool = False) -> None:
        """`root`: the folder itself, or one above it that is trusted. Between the two, no link is followed."""
        self._folder, self._root = folder, root
        self._folder_mode, self.file_mode = (0o700, 0o600) if private else (0o777, 0o644)
        self.largest = largest

    def put(self, path: str, chunks: Iterable[bytes]) -> StoredFile:
        """Write a file: there whole, or not at all. One of that name is replaced."""
        upload = self.upload(path)
        try:
            upload.begin()
            for chunk in chunks:
                upload.write(chunk)
            return upload.commit()
        except BaseException:
            upload.abort()
            raise

    def upload(self, path: str) -> ArtifactUpload:
        """A file to be written piece by piece. Nothing is touched before it begins."""
        return ArtifactUpload(self, path, components(path), self.largest)

    def open(self, path: str, *, found: bool = False) -> tuple[BinaryIO, StoredFile]:
        """To read. `found`: the path was read from the folder itself, and may hold what no address does."""
        *folders, name = path.split("/") if found else components(path)
        with plain_file_errors(path), self.inside(folders) as handle:
            file = open_at(handle, name, Path(path))
            seen = os.fstat(file)
            return os.fdopen(file, "rb"), StoredFile(path=path, size=seen.st_size, modified=seen.st_mtime)

    def list(self, path: str = "") -> list[StoredFile]:
        """Files and folders right under a path, by name; nothing where there is nothing."""
        folders = components(path) if path else []
        try:
            with plain_file_errors(path), self.inside(folders) as handle:
                found = [_entry(handle, name, folders) for name in sorted(os.listdir(handle)) if not name.endswith(PART)]
                return [entry for entry in found if entry]
        except NotFound:
            return []

    def delete(self, path: str) -> None:
        *folders, name = components(path)
        with plain_file_errors(path), self.inside(folders) as handle:
            os.unlink(name, dir_fd=handle)

    @contextlib.contextmanager
    def inside(self, folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """A handle of the folder that lies that deep, each step taken from the one above and through no link."""
        with contextlib.ExitStack() as held:
            try:
                handle = held.enter_context(
                    open_folder_beneath(self._root, self._folder.joinpath(*folders), make=make, mode=self._folder_mode)
                )
            except OSError as error:
                if make and error.errno in (errno.ENOTDIR, errno.ELOOP):
                    name = _short(Path(str(error.filename)).name)
                    raise Conflict(f"{name} is a file or a link, so it cannot contain files", hint="choose another folder") from error
                raise
            yield handle


class ArtifactUpload:
    """A file on its way: begin, write, and either commit or abort; beside its name until then.

    Each call is short and may come from another thread than the last. One that is still at it is waited for, and after the end nothing
    is written any more.
    """

    def __init__(self, files: ArtifactFiles, path: str, parts: Sequence[str], largest: int | None) -> None:
        self._files = files
        self._path = path
        *self._folders, self._name = parts
        self._largest = largest
        self._part = f".{secrets.token_hex(8)}{PART}"
        self._lock = threading.Lock()
        self._held = contextlib.ExitStack()  # handles of the folder and of the file
        self._handle = self._file = -1
        self._over = False
        self._size, self._sha256 = 0, hashlib.sha256()

    def begin(self) -> None:
        with self._lock, plain_file_errors(self._path):
            self._must_go_on()
            with contextlib.ExitStack() as held:
                self._handle = held.enter_context(self._files.inside(self._folders, make=True))
                if kind_of(self._handle, self._name) not in (None, "file"):
                    raise Conflict(f"{self._path} is a folder or a link; a file cannot replace it")
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self._part, flags, self._files.file_mode, dir_fd=self._handle)
                held.callback(os.close, self._file)
                self._held = held.pop_all()

    def write(self, chunk: bytes) -> None:
        with self._lock, plain_file_errors(self._path):
            self._must_go_on()
            self._size += len(chunk)
            if self._largest is not None and self._size > self._largest:
                raise TooLarge(f"{_short(self._path)} is larger than {self._largest} bytes, which is all the space left for it")
            self._sha256.update(chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def commit(self) -> StoredFile:
        with self._lock, plain_file_errors(self._path):
            self._must_go_on()
            os.fsync(self._file)
            os.rename(self._part, self._name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            self._over = True
            with self._held:
                os.fsync(self._handle)
            return StoredFile(path="/".join([*self._folders, self._name]), size=self._size, sha256=self._sha256.hexdigest())

    def abort(self) -> None:
        """Leave nothing behind. After the end, or before the beginning, there is nothing."""
        with self._lock:
            if self._over:
                return
            self._over = True
            with self._held:
                if self._file >= 0:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self._part, dir_fd=self._handle)

    def _must_go_on(self) -> None:
        if self._over:
            raise ConnectionError("the upload was interrupted")


def kind_of(handle: int, name: str) -> str | None:
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    return "file" if stat.S_ISREG(mode) else "other"


def _entry(handle: int, name: str, folders: list[str]) -> StoredFile | None:
    try:
        seen = os.stat(name, dir_fd=handle, follow_symlinks=False)
        components(name)
    except (OSError, InvalidInput):
        return None
    if not (stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)):
        return None
    is_dir = stat.S_ISDIR(seen.st_mode)
    return StoredFile(path="/".join([*folders, name]), is_dir=is_dir, size=0 if is_dir else seen.st_size, modified=seen.st_mtime)


@contextlib.contextmanager
def plain_file_errors(path: str) -> Iterator[None]:
    """What the system says about files, in our words."""
    try:
        yield
    except ConnectionError:  # of whoever sends the file: not a matter of ours
        raise
    except LinkRefused as error:
        named = Path(str(error.filename)).name
        raise NotFound(
            f"there is no file {_short(path)}: {_short(named)} is a link, and the server does not follow links",
            hint="put the file itself into the run's folder",
        ) from error
    except NotAFile as error:
        raise NotFound(f"{_short(path)} is not a file") from error
    except OSError as error:
        match error.errno:
            case errno.ENOENT | errno.ENOTDIR | errno.ELOOP | errno.ENXIO:
                raise NotFound(f"there is no file {_short(path)}") from error
            case errno.EISDIR | errno.EEXIST | errno.ENOTEMPTY:
                raise Conflict(f"{_short(path)} is a folder") from error
            case errno.ENAMETOOLONG | errno.EINVAL | errno.EILSEQ:
                raise InvalidInput(f"{_short(path)} is not a valid name on this file system") from error
            case errno.ENOSPC | errno.EDQUOT:
                raise StorageFull(
                    f"no room for {_short(path)}: {error.strerror}", hint="make room where the server keeps its files"
                ) from error
            case _:
                raise StorageError(f"{_short(path)} cannot be stored or read: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{_short(path)} is not a valid name on this file system") from error


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:97]}…")
