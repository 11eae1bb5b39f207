"""A run's results as files: listed and read where the run's folder is, in pieces that can travel. No link is followed."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.checkpoints.restoring.newest import published_names_of
from onward.errors import NotFound, OnwardError
from onward.operations.runs.own_checkpoints import own_checkpoints
from onward.operations.runs.record import checkpoints as checkpoint_records
from onward.operations.runs.record import read_folder
from onward.rundir.files.no_links import open_beneath, walk_beneath
from onward.rundir.files.written import written_files
from onward.rundir.layout import RunDir
from onward.sdk.atomic_files import PART
from onward.supervisor.preparation.environment import working_folder

ARTIFACTS, MODELS, WRITTEN, TENSORBOARD, LOGS, CHECKPOINTS, OWN = (
    "artifacts",
    "models",
    "written",
    "tensorboard",
    "logs",
    "checkpoints",
    "own checkpoints",
)
_MOST_NAMED = 5
_BATCH = 500  # files in a piece
_PIECE = 1 << 20  # bytes of a file in a piece

Piece = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunFile:
    path: str  # in the run's folder, with slashes
    kind: str
    size: int
    modified: int  # nanoseconds


class ResultListing:
    """Pieces: `files` as [path, kind, size, modified], `skipped` as words on what is not copied and why, and at the end `left`: the
    checkpoints that were not asked for."""

    def __init__(self, dir: RunDir, *, checkpoints: str | None) -> None:
        self._dir = dir
        self._checkpoints = checkpoints
        self._skipped: list[str] = []
        self._odd: list[str] = []  # links, pipes, sockets

    def pieces(self) -> Iterator[Piece]:
        batch: list[list[Any]] = []
        for looked, file in enumerate(self._files(), 1):
            if file:
                batch.append([file.path, file.kind, file.size, file.modified])
            if len(batch) == _BATCH:
                yield {"files": batch}
                batch = []
            elif looked % _BATCH == 0:
                yield {}  # a sign of life
        if self._odd:
            more = f" and {len(self._odd) - _MOST_NAMED} more" if len(self._odd) > _MOST_NAMED else ""
            self._skipped.append(f"links and special files: {', '.join(self._odd[:_MOST_NAMED])}{more}")
        left = [] if self._checkpoints else [record["bytes"] or 0 for record in checkpoint_records(self._dir)]
        yield {"files": batch, "skipped": self._skipped, "left": {"count": len(left), "bytes": sum(left)}}

    def _files(self) -> Iterator[RunFile | None]:
        dir = self._dir
        for kind, folder in ((ARTIFACTS, dir.artifacts), (MODELS, dir.models), (TENSORBOARD, dir.tensorboard), (LOGS, dir.logs)):
            yield from self._found(kind, folder, walk_beneath(dir.root, folder, unread=self._unread))
        yield from self._written()
        for name in self._wanted_checkpoints():
            folder = dir.checkpoints / name
            yield from self._found(CHECKPOINTS, folder, walk_beneath(dir.root, folder, unread=self._unread))

    def _written(self) -> Iterator[RunFile | None]:
        written = written_files(self._dir)
        if written is None:
            self._skipped.append("what the training wrote into its working folder: its code is not frozen, so nothing distinguishes them")
            return
        own: set[str] = set()
        with contextlib.suppress(OnwardError, ValueError):
            at = working_folder(read_folder(self._dir).spec, self._dir).relative_to(self._dir.path)
            own = {str(at / entry["path"]) for entry in own_checkpoints(self._dir)}
        try:
            for file in self._found(WRITTEN, self._dir.code, written.walk(unread=self._unread)):
                yield RunFile(**{**vars(file), "kind": OWN}) if file and file.path in own else file
        except (OSError, NotFound) as error:
            self._skipped.append(f"code: {error}")

    def _wanted_checkpoints(self) -> list[str]:
        wanted = self._checkpoints
        if wanted is None:
            return []
        names = published_names_of(self._dir.checkpoints)
        if wanted == "newest":
            return [str(name) for name in names[-1:]]
        found = [name for name in names if wanted == "all" or str(name.step) == wanted]
        if not found and wanted != "all":
            there = ", ".join(str(name.step) for name in names[-10:])
            hint = f"there are those of step {there}" if there else "it has none yet"
            raise NotFound(f"there is no checkpoint of step {wanted}", hint=hint)
        return [str(name) for name in found]

    def _found(self, kind: str, folder: Path, walk: Iterator[tuple[str, os.stat_result | None]]) -> Iterator[RunFile | None]:
        prefix = str(folder.relative_to(self._dir.path))
        for path, seen in walk:
            if seen is None or path.endswith(PART):
                if seen is None and not path.endswith("/"):
                    self._odd.append(f"{prefix}/{path}")
                yield None
            else:
                yield RunFile(path=f"{prefix}/{path}", kind=kind, size=seen.st_size, modified=seen.st_mtime_ns)

    def _unread(self, error: OSError) -> None:
        if error.errno != errno.ENOENT:  # there was nothing, or it is gone
            self._skipped.append(f"{error.filename or 'a folder'}: {error.strerror}")


def file_pieces(dir: RunDir, files: Sequence[Sequence[Any]]) -> Iterator[Piece]:
    """Of each of `files` ([path, offset, size, modified]): a piece at its begin, those with `data`, one at its end; or a `problem`.

    `data` is bytes, or text where it travels: see `as_json`. A file is read from `offset` if it is the same file as then, else from its
    begin; as far as it went when it was opened.
    """
    for path, offset, size, modified in files:
        try:
            with os.fdopen(open_beneath(dir.root, dir.path / path), "rb") as file:
                seen = os.fstat(file.fileno())
                at = offset if (seen.st_size, seen.st_mtime_ns) == (size, modified) else 0
                yield {"path": path, "at": at, "size": seen.st_size, "modified": seen.st_mtime_ns}
                file.seek(at)
                while at < seen.st_size and (data := file.read(min(_PIECE, seen.st_size - at))):
                    yield {"path": path, "at": at, "to": at + len(data), "data": data}
                    at += len(data)
                yield (
                    {"path": path, "end": at} if at == seen.st_size else {"path": path, "problem": "it became shorter while it was copied"}
                )
        except (OSError, ValueError) as error:
            yield {"path": path, "problem": error.strerror or str(error) if isinstance(error, OSError) else str(error)}


def as_json(piece: Piece) -> Piece:
    return {**piece, "data": base64.b64encode(piece["data"]).decode()} if "data" in piece else piece


def from_json(piece: Piece) -> Piece:
    return {**piece, "data": base64.b64decode(piece["data"])} if "data" in piece else piece
