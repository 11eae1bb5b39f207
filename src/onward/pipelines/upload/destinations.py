"""Places that a pipeline's results are uploaded to: a folder, a host by rsync, any URL that fsspec knows.

What lies in the runs' root under some path lies there under the same path. A place answers only after it has looked at what
arrived: by checksums of what is there now, not of what was sent. Doing it twice is doing it once; links are no files, and where
a place has none they are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from onward.errors import NotDelivered, SchedulerUnavailable
from onward.model.pipelines.upload import UploadTargetKind, upload_target_kind
from onward.schedulers.command import run_command
from onward.sdk.atomic_files import draft_of

_LONGEST = 12 * 3600.0  # seconds of one rsync; its own --timeout ends one that hangs
_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=20"
_PIECE = 1 << 20

Sums = Mapping[str, str]  # path seen from the root → SHA-256


class Destination(Protocol):
    def put(self, root: Path, paths: Sequence[str], sums: Sums) -> None:
        """Have these files and folders be there as they are here, or raise NotDelivered."""
        ...


def destination_of(to: str) -> Destination:
    match upload_target_kind(to):
        case UploadTargetKind.FOLDER:
            return FolderDestination(Path(to).expanduser())
        case UploadTargetKind.RSYNC:
            return RsyncDestination(to)
        case UploadTargetKind.URL:
            return UrlDestination(to)


def checksums_of(root: Path, paths: Sequence[str]) -> dict[str, str]:
    """Of all files under these paths; links are none."""
    found = {}
    for path in paths:
        for file in _files(root / path):
            with file.open("rb") as reading:
                found[str(file.relative_to(root))] = hashlib.file_digest(reading, "sha256").hexdigest()
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = (Path(above, name) for above, _, names in os.walk(path) for name in names)
    return sorted(file for file in found if not file.is_symlink() and file.is_file())


@dataclass(frozen=True)
class FolderDestination:
    """Any folder that this machine sees. The one it lies in must be there: a disk that is not mounted is not filled by mistake."""

    path: Path

    def put(self, root: Path, paths: Sequence[str], sums: Sums) -> None:
        if not self.path.parent.is_dir():
            raise NotDelivered(f"{self.path.parent} does not exist", hint="is its disk mounted here?")
        try:
            for name, digest in sums.items():
                self._put(root / name, self.path / name, digest)
        except OSError as error:
            raise NotDelivered(f"{self.path}: {error.strerror or error}", hint="is there room, and do you have write access?") from error

    def _put(self, source: Path, target: Path, digest: str) -> None:
        if _is(target, digest):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as reading, draft_of(target, mode=0o666) as writing:
            shutil.copyfileobj(reading, writing, _PIECE)
            writing.flush()
            os.fsync(writing.fileno())
            if not _is(Path(writing.name), digest):
                raise NotDelivered(f"{target} did not arrive unchanged", hint="it is sent again")


def _is(path: Path, digest: str) -> bool:
    try:
        with path.open("rb") as reading:
            return hashlib.file_digest(reading, "sha256").hexdigest() == digest
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class RsyncDestination:
    """host:/folder through ssh, or rsync://host/module. A second rsync, which only looks, compares checksums on both sides."""

    to: str

    def put(self, root: Path, paths: Sequence[str], sums: Sums) -> None:
        sources = [f"{root}/./{path}" for path in paths]
        self._rsync("-rlt", "--partial-dir=.rsync-partial", *self._common(), "--", *sources, f"{self.to.rstrip('/')}/")
        differing = self._rsync("-rln", "--out-format=%i %n", *self._common(), "--", *sources, f"{self.to.rstrip('/')}/")
        files = [line for line in differing.splitlines() if line[1:2] == "f"]
        if files:
            raise NotDelivered(f"{self.to}: {len(files)} files did not arrive unchanged: {files[0]}", hint="they are sent again")

    def _common(self) -> tuple[str, ...]:
        remote = ("-e", _SSH) if "://" not in self.to else ()
        return ("-R", "-c", "-s", "--timeout=120", *remote)

    def _rsync(self, *words: str) -> str:
        agent = {name: os.environ[name] for name in ("SSH_AUTH_SOCK",) if name in os.environ}
        try:
            answer = run_command(("rsync", *words), timeout=_LONGEST, extra=agent)
        except SchedulerUnavailable as error:
            raise NotDelivered(f"{self.to}: {error.message}", hint=error.hint) from error
        if answer.code:
            lines = answer.err.splitlines()
            reason = next((line for line in lines if not line.startswith("rsync error:")), lines[-1] if lines else "it printed nothing")
            raise NotDelivered(f"{self.to}: rsync ended with exit code {answer.code}: {reason}", hint=f"try `rsync FILE {self.to}/` there")
        return answer.out


@dataclass(frozen=True)
class UrlDestination:
    """Anything that fsspec reaches, if the Python that runs this has it. What arrived is read back."""

    to: str

    def put(self, root: Path, paths: Sequence[str], sums: Sums) -> None:
        files, base = self._open()
        for name, digest in sums.items():
            target = str(PurePosixPath(base, name)) if base else name
            try:
                self._put(files, root / name, target, digest)
            except NotDelivered:
                raise
            except Exception as error:  # each of its file systems has errors of its own
                raise NotDelivered(
                    f"{self.to}: {name}: {error or type(error).__name__}", hint="are its credentials set up there?"
                ) from error

    def _open(self) -> tuple[Any, str]:
        try:
            core = importlib.import_module("fsspec.core")
        except ImportError as error:
            raise NotDelivered(
                f"{self.to}: fsspec is not installed in the Python that uploads", hint="install fsspec there, or upload to host:/folder"
            ) from error
        try:
            files, base = core.url_to_fs(self.to)
        except Exception as error:  # an unknown protocol, or one whose package is missing
            raise NotDelivered(
                f"{self.to}: {error}", hint="its package must be installed in the Python that uploads, such as s3fs for s3://"
            ) from error
        return files, str(base)

    def _put(self, files: Any, source: Path, target: str, digest: str) -> None:
        with contextlib.suppress(Exception):  # not there; or, where we may not list, not to be seen before it is
            if _digest(files, target) == digest:
                return
        with contextlib.suppress(Exception):  # object stores have no folders; where one is missing, what follows says so
            files.makedirs(str(PurePosixPath(target).parent), exist_ok=True)
        files.put_file(str(source), target)
        if _digest(files, target) != digest:
            raise NotDelivered(f"{self.to}: {target} did not arrive unchanged", hint="it is sent again")


def _digest(files: Any, target: str) -> str:
    files.invalidate_cache()
    found = hashlib.sha256()
    with files.open(target, "rb") as reading:
        while piece := reading.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
