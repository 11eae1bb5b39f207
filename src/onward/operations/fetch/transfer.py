"""From a run on any host to a folder here: list, choose, copy what is not there yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from onward.errors import Conflict, InvalidInput, NotFound, StorageError
from onward.model.quantity import counted, format_bytes
from onward.operations.fetch.result_files import Piece, RunFile
from onward.operations.fetch.selection import select
from onward.operations.fetch.target import FetchFolder, safe_parts
from onward.rundir.layout import RunDir

if TYPE_CHECKING:
    from onward.operations.hosts.all_hosts import LocatedRun


class FetchProgress(Protocol):
    def bytes(self, count: int) -> None: ...

    def done(self, file: RunFile) -> None: ...


@dataclass(frozen=True, kw_only=True)
class FetchPlan:
    folder: FetchFolder
    to_copy: list[RunFile]
    here: list[RunFile]  # already, with this size and time
    notes: list[str]  # on what is left out


@dataclass(frozen=True, kw_only=True)
class Fetched:
    files: list[RunFile]
    problems: dict[str, str]  # by path, why it could not be copied


def plan_fetch(found: LocatedRun, paths: Sequence[str], *, to: Path | None, checkpoints: str | None, logs: bool) -> FetchPlan:
    """`checkpoints`: newest, all or a step. None: they are left out, and a note says so."""
    name = PurePosixPath(found.run).name
    folder = _target(found, to if to is not None else Path(*safe_parts(name)))
    files: list[RunFile] = []
    notes: list[str] = []
    left = {"count": 0, "bytes": 0}
    for piece in found.host.result_files(run=found.run, checkpoints=checkpoints):
        files += [RunFile(path=path, kind=kind, size=size, modified=at) for path, kind, size, at in piece.get("files", ())]
        notes += [f"not fetched: {words}" for words in piece.get("skipped", ())]
        left = piece.get("left", left)
    size = format_bytes(left["bytes"])
    unasked = f"{counted(left['count'], 'checkpoint')} ({size}) not fetched; to get them: --checkpoints newest, all or a step"
    try:
        chosen = select(files, paths, checkpoints=checkpoints is not None, logs=logs)
    except NotFound as error:
        raise NotFound(error.message, hint=f"{error.hint}; {unasked}" if left["count"] else error.hint) from None
    if left["count"] and not paths and not logs:
        notes.append(unasked)
    if chosen.own:
        size = format_bytes(sum(file.size for file in chosen.own))
        words = f"{counted(len(chosen.own), 'checkpoint file')} of the training's own ({size}) not fetched"
        notes.append(f"{words}; to get them: --checkpoints newest, or their paths")
    if not chosen.files:
        hint = notes[0] if notes else "a training's artifacts, logs and the files that it writes to its working folder can be fetched"
        raise NotFound(f"{name} has nothing to fetch{' in its logs' if logs else ''}", hint=hint)
    chosen.files.sort(key=lambda file: file.path)
    here = [file for file in chosen.files if folder.has(file)]
    known = {file.path for file in here}
    return FetchPlan(folder=folder, to_copy=[file for file in chosen.files if file.path not in known], here=here, notes=notes)


def fetch(found: LocatedRun, plan: FetchPlan, progress: FetchProgress) -> Fetched:
    """A file that cannot be read does not stop the others. No room here, or no answer from there, does: what is whole stays."""
    asked = [[file.path, plan.folder.begun(file), file.size, file.modified] for file in plan.to_copy]
    problems: dict[str, str] = {}
    done: list[RunFile] = []
    with plan.folder.held():
        for file, problem in _stored(plan, found.host.file_pieces(run=found.run, files=asked), progress):
            if problem:
                problems[file.path] = problem
            else:
                done.append(file)
                progress.done(file)
        if len(done) == len(plan.to_copy):
            plan.folder.tidy()
    missing = len(plan.to_copy) - len(done) - len(problems)
    if missing:
        raise StorageError(f"{counted(missing, 'file')} did not arrive", hint="run it again to continue")
    return Fetched(files=done, problems=problems)


def _target(found: LocatedRun, to: Path) -> FetchFolder:
    folder = FetchFolder(to)
    real = folder.path.resolve()
    if any(RunDir(path).is_run() for path in (real, *real.parents)):
        own = found.host.hostname is None and real.is_relative_to(Path(found.run).resolve())
        which = "the run's own folder, where its files are already" if own else "a run's folder"
        raise Conflict(f"{folder.path} is in {which}", hint="choose another folder by --to")
    return folder


def _stored(plan: FetchPlan, pieces: Iterable[Piece], progress: FetchProgress) -> Iterator[tuple[RunFile, str]]:
    """Each file when it is whole, or with why it is not. A file begins again where a connection broke."""
    asked = {file.path: file for file in plan.to_copy}
    with ExitStack() as held:
        writer: _Writer | None = None
        for piece in pieces:
            if not piece:
                continue
            file = asked.get(piece.get("path", ""))
            if file is None:
                raise InvalidInput(f"{piece.get('path')!r} arrived, which nobody asked for", hint="run it again")
            if "problem" in piece:
                held.close()
                yield file, str(piece["problem"])
            elif "modified" in piece:
                held.close()
                writer = _Writer.begin(plan.folder, replace(file, size=piece["size"], modified=piece["modified"]), piece["at"], held)
            elif writer is None or writer.file.path != file.path or writer.at != piece.get("at", piece.get("end")):
                raise StorageError(f"a part of {file.path} did not arrive", hint="run it again to continue")
            elif "data" in piece:
                progress.bytes(writer.write(piece))
            else:
                held.close()
                plan.folder.keep(writer.file)
                yield writer.file, ""
                writer = None


@dataclass(kw_only=True)
class _Writer:
    file: RunFile
    stream: BinaryIO
    at: int

    @staticmethod
    def begin(folder: FetchFolder, file: RunFile, at: int, held: ExitStack) -> _Writer:
        if at and at > folder.begun(file):
            raise StorageError(f"a part of {file.path} did not arrive", hint="run it again to continue")
        return _Writer(file=file, stream=held.enter_context(folder.writing(file, at=at)), at=at)

    def write(self, piece: dict[str, Any]) -> int:
        data: bytes = piece["data"]
        self.stream.write(data)
        self.at += len(data)
        return len(data)
