"""Artifacts that clients hand to the relay: on the node's disk first, then carried to the run's folder, whole or not at all.

Reading looks in both places. Names are confined by `rundir/files/artifacts.py` in both.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from onward.errors import InvalidInput, NotFound, StorageError
from onward.rundir.files.artifacts import ArtifactFiles, StoredFile
from onward.rundir.layout import LegLocal, RunDir

_CHUNK = 1 << 20


class RelayArtifacts:
    """The files of a run, or of one of its models: `local` fills, `run` keeps."""

    def __init__(self, local: Path, run: Path) -> None:
        self._local = ArtifactFiles(local, root=local)
        self._run = ArtifactFiles(run, root=run)

    def put(self, path: str, pieces: Iterable[bytes]) -> StoredFile:
        return self._local.put(path, pieces)

    def open(self, path: str) -> tuple[BinaryIO, StoredFile]:
        try:
            return self._local.open(path)
        except (NotFound, OSError):
            return self._run.open(path)

    def list(self, path: str) -> list[StoredFile]:
        """By name; a file that is still on the node is the newer one."""
        found = {file.path: file for files in (self._run, self._local) for file in _listed(files, path)}
        return [found[name] for name in sorted(found)]

    def delete(self, path: str) -> None:
        gone = 0
        for files in (self._local, self._run):
            try:
                files.delete(path)
                gone += 1
            except (NotFound, OSError):
                continue
        if not gone:
            raise NotFound(f"there is no file {path[:100]!r}")


def carry_artifacts(local: LegLocal, run: RunDir, *, moved: Callable[[int], None] | None = None) -> None:
    """Move what has come whole to the run's folder. Done again after a kill, it is the same. `moved` hears of each piece."""
    for source, target in ((local.artifacts, run.artifacts), (local.models, run.models)):
        for path in pending_artifacts(source):
            _move(source, path, target, moved or (lambda size: None))


def pending_artifacts(folder: Path) -> list[str]:
    """Files that are still on the node, by their relative paths. Pipes, sockets, devices and links are none."""
    return sorted(
        os.path.relpath(os.path.join(there, name), folder)
        for there, _, names in os.walk(folder)
        for name in names
        if not name.endswith(".part") and _is_file(os.path.join(there, name))
    )


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def has_pending_artifacts(local: LegLocal) -> bool:
    return bool(pending_artifacts(local.artifacts) or pending_artifacts(local.models))


def _move(source: Path, path: str, target: Path, moved: Callable[[int], None]) -> None:
    """The copy on the node goes only if it is still the one that was carried."""
    try:
        file, _ = ArtifactFiles(source, root=source).open(path)
    except NotFound:
        return
    with file:
        before = os.fstat(file.fileno())
        ArtifactFiles(target, root=target).put(path, _pieces(file, moved))
    try:
        now = os.stat(source / path, follow_symlinks=False)
        if (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns):
            os.unlink(source / path)
    except FileNotFoundError:
        pass


def _pieces(file: BinaryIO, moved: Callable[[int], None]) -> Iterator[bytes]:
    moved(0)
    while data := file.read(_CHUNK):
        yield data
        moved(len(data))


def _listed(files: ArtifactFiles, path: str) -> list[StoredFile]:
    try:
        return files.list(path)
    except (OSError, InvalidInput, StorageError):  # the folder is not there yet
        return []
