"""What a training wrote into its working folder, which is a copy of its code: all that is not code. Links are not followed."""

from __future__ import annotations

import heapq
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from onward.errors import InvalidInput, NotFound
from onward.rundir.files.artifacts import ArtifactFiles, StoredFile, components
from onward.rundir.files.code_list import CodeList, read_code_list
from onward.rundir.files.no_links import stat_at, walk_beneath
from onward.rundir.layout import RunDir
from onward.sdk.atomic_files import PART

_NOT_SHOWN = ("__pycache__", ".ipynb_checkpoints")
_USUAL = re.compile(r"[A-Za-z0-9_.=+@ -]{3,99}")
_MOST_LOOKED_AT = 5_000  # entries, where a look goes through folders
_MOST_LOOKS = 500  # files of the code of which a list asks whether they were written again


@dataclass(frozen=True, kw_only=True)
class WrittenPage:
    files: list[StoredFile]
    more: int  # that come after them


@dataclass(frozen=True, kw_only=True)
class NewestWritten:
    count: int
    all: bool  # were counted; else there are more
    newest: list[StoredFile]


def written_files(dir: RunDir) -> WrittenFiles | None:
    """None where nothing tells what is code."""
    code = read_code_list(dir)
    return WrittenFiles(dir, code) if code else None


class WrittenFiles:
    """Opened from the root's handle, as artifacts are, and code is never among them."""

    def __init__(self, dir: RunDir, code: CodeList) -> None:
        self._root, self._folder = dir.root, dir.code
        self._files = ArtifactFiles(dir.code, root=dir.root)
        self._code = code
        self._looks = _MOST_LOOKS

    def open(self, path: str) -> tuple[BinaryIO, StoredFile]:
        file, seen = self._files.open(path)
        try:
            with self._files.inside(()) as top:
                if all(map(_is_shown, path.split("/"))) and not self._code.is_code(
                    path, os.fstat(file.fileno()), folder=os.fstat(top).st_ino
                ):
                    return file, seen
        except BaseException:
            file.close()
            raise
        file.close()
        raise NotFound(f"{path!r} is not a file that the training wrote", hint="code is not served")

    def page(self, path: str = "", *, after: str = "", most: int) -> WrittenPage:
        """Files and folders right under a path, by name; those behind the name `after`. Nothing where there is nothing."""
        folders = components(path) if path else []
        if not all(map(_is_shown, folders)):
            return WrittenPage(files=[], more=0)
        try:
            with self._files.inside(()) as top, self._files.inside(folders) as handle:
                inode = os.fstat(top).st_ino
                names = sorted(name for name in self._names(handle, folders, inode) if name > after)
                files = [file for name in names[:most] if (file := _stored(handle, name, folders))]
        except (OSError, NotFound):
            return WrittenPage(files=[], more=0)
        return WrittenPage(files=files, more=max(0, len(names) - most))

    def newest(self, most: int) -> NewestWritten | None:
        """Of a bounded look through all folders. None where they cannot be looked at."""
        found: list[tuple[float, str, int]] = []
        looked = 0
        try:
            inode = self._inode()
        except OSError:
            return None
        for looked, (path, seen) in enumerate(self._walk(), 1):
            if looked > _MOST_LOOKED_AT:
                break
            if seen and not self._code.is_code(path, seen, folder=inode):
                found.append((seen.st_mtime, path, seen.st_size))
        newest = [StoredFile(path=path, size=size, modified=at) for at, path, size in heapq.nlargest(most, found)]
        return NewestWritten(count=len(found), all=looked <= _MOST_LOOKED_AT, newest=newest)

    def walk(self, *, unread: Callable[[OSError], object]) -> Iterator[tuple[str, os.stat_result | None]]:
        """All of them, as `walk_beneath` does it: None for what is not a regular file."""
        inode = self._inode()
        for path, seen in self._walk(unread=unread):
            if seen is None or not self._code.is_code(path, seen, folder=inode):
                yield path, seen

    def _walk(self, *, unread: Callable[[OSError], object] = lambda _: None) -> Iterator[tuple[str, os.stat_result | None]]:
        return walk_beneath(self._root, self._folder, skip=_NOT_SHOWN, unread=unread)

    def _inode(self) -> int:
        with self._files.inside(()) as top:
            return os.fstat(top).st_ino

    def _names(self, handle: int, folders: list[str], inode: int) -> Iterator[str]:
        """What is asked of the storage about each name is asked of names of the code alone: beside them, there may be very many."""
        prefix = "".join(f"{name}/" for name in folders)
        with os.scandir(handle) as entries:
            for entry in entries:
                if not _is_shown(entry.name):
                    continue
                path = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if path not in self._code.folders or self._holds_written([*folders, entry.name], inode):
                        yield entry.name
                elif entry.is_file(follow_symlinks=False):
                    self._looks -= path in self._code.files
                    seen = stat_at(handle, entry.name) if path in self._code.files else None
                    if seen is None or not self._code.is_code(path, seen, folder=inode):
                        yield entry.name

    def _holds_written(self, folders: list[str], inode: int) -> bool:
        """Of a folder of the code: whether there is more in it; surely or, after very many looks, perhaps."""
        if self._looks <= 0:
            return True
        try:
            with self._files.inside(folders) as handle:
                return any(self._names(handle, folders, inode))
        except (OSError, NotFound):
            return False


def _is_shown(name: str) -> bool:
    """Some addresses lead nowhere, and some names are nobody's."""
    if _USUAL.fullmatch(name):
        return name not in _NOT_SHOWN and not name.endswith(PART)
    try:
        return bool(components(name)) and name not in _NOT_SHOWN
    except InvalidInput:
        return False


def _stored(handle: int, name: str, folders: list[str]) -> StoredFile | None:
    try:
        seen = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return None  # gone
    is_dir = stat.S_ISDIR(seen.st_mode)
    return StoredFile(path="/".join([*folders, name]), is_dir=is_dir, size=0 if is_dir else seen.st_size, modified=seen.st_mtime)
