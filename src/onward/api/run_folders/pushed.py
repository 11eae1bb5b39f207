"""Runs whose folders this server cannot see, but which jobs send: taken piece by piece, and read as if they were here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onward.api.run_folders.locate import files_of, folder_of, room_for
from onward.api.services import Services
from onward.errors import InvalidInput, NotFound
from onward.model.run import fold
from onward.model.spec import spec_from_json
from onward.rundir.files.pieces import gather
from onward.rundir.layout import RunDir
from onward.tracker.ingest.pushed_files import ARTIFACTS, EVERYTHING, is_record
from onward.tracker.runs.artifacts import ArtifactRecord, put_artifact
from onward.tracker.runs.rows import RunInfo


@dataclass(frozen=True, kw_only=True)
class PushedPiece:
    file: str
    offset: int
    data: bytes
    size: int | None  # of the whole, where that is replaced rather than appended to
    modified: int | None  # likewise


def take_piece(svc: Services, run_id: str, piece: PushedPiece) -> int:
    """From where to send on. Of a run whose folder is seen here, files are read there: nothing of them is wanted."""
    if is_record(piece.file):
        return svc.tracker.push.piece(run_id, piece.file, piece.offset, piece.data)
    run = svc.tracker.runs.get(run_id)
    if folder_of(svc, run.folder):
        return EVERYTHING
    if not piece.file.startswith(ARTIFACTS):
        return svc.pushed.take(run.run_id, piece.file, piece.offset, piece.data)
    return _artifact(svc, run, piece)


def _artifact(svc: Services, run: RunInfo, piece: PushedPiece) -> int:
    if piece.size is None or piece.modified is None:
        raise InvalidInput("a piece of an artifact needs the full size and the time of the last change")
    path = piece.file.removeprefix(ARTIFACTS)
    files = files_of(svc, run.run_id, run.folder, largest=room_for(svc, run.run_id, path))
    now, whole = gather(files, path, piece.offset, piece.data, size=piece.size, modified=piece.modified)
    if whole:
        made = ArtifactRecord(path=path, kind="", bytes=whole.size, sha256=whole.sha256, stored=True, created=svc.clock.now())
        put_artifact(svc.tracker, run.run_id, made)
    return now


def readable(svc: Services, run: RunInfo) -> RunDir | None:
    """Where a run's logs are: in its folder, or what was sent of it."""
    return folder_of(svc, run.folder) or svc.pushed.folder_of(run.run_id)


def must_be_readable(svc: Services, run: RunInfo) -> RunDir:
    found = readable(svc, run)
    if found is None:
        raise NotFound(
            f"run {run.run_id} has no folder that this server can see, and no pieces of it were sent",
            hint="runs that Onward executes have one, under the roots in the settings; `onward sync FOLDER` sends one",
        )
    return found


def pushed_checkpoints(svc: Services, run: RunInfo) -> Iterator[dict[str, Any]]:
    """As the journals that were sent tell of them."""
    spec, events = svc.tracker.push.spec_and_events(run.run_id)
    if spec is None:
        return
    for leg in fold(spec_from_json(spec), events).legs.values():
        for one in leg.published:
            yield {"step": one.step, "leg": leg.number, "bytes": one.bytes, "state": "told", "created": one.at, "metrics": {}}


def read_events(svc: Services) -> list[str]:
    """TensorBoard's files that were sent; problems in words."""
    problems: list[str] = []
    for run in svc.pushed.fresh():
        dir = svc.pushed.folder_of(run)
        try:
            if dir:
                problems += svc.tracker.event_files.look(dir.tensorboard, run, root=dir.root, by_lives=False).problems
        except NotFound:  # deleted since
            continue
        except BaseException:
            svc.pushed.again(run)
            raise
    return problems
