"""From a run's record to its folder. A record may come from anywhere; only folders right under our own roots are ever opened."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from onward.api.services import Services
from onward.errors import NotFound, TooLarge
from onward.model.mlflow.records import LoggedModelRecord
from onward.rundir.layout import RunDir
from onward.sdk import contract
from onward.tracker.runs.artifact_files import ArtifactFiles
from onward.tracker.runs.artifacts import artifacts_of

LARGEST = 64 << 30  # bytes of one uploaded file
MODELS = "models"  # the folder of models among the server's own files


def folder_of(svc: Services, folder: str | None) -> RunDir | None:
    """The run's folder, if it has one that this server may look into."""
    if not folder:
        return None
    path = Path(folder)
    dir = RunDir(path)
    if path.is_symlink() or path.parent not in svc.context.roots or path.name in ("", ".", ".."):
        return None
    return dir if dir.is_run() else None


def must_have_folder(svc: Services, run: str, folder: str | None) -> RunDir:
    found = folder_of(svc, folder)
    if found is None:
        raise NotFound(
            f"run {run} has no folder that this server can see",
            hint="only runs that Onward executes have one, under the roots in the settings",
        )
    return found


def room_for(svc: Services, run: str, path: str) -> int:
    """How large an artifact of this path may be: what the run's other files leave of `server.artifacts`."""
    return _room_left(svc, f"run {run}", lambda: _artifact_bytes(svc, run, but=path) + _model_bytes(svc, run))


def room_for_model(svc: Services, model: LoggedModelRecord, path: str) -> int:
    """The same for a file of a model, which counts as its run's; those of a model of no run are counted alone."""

    def used() -> int:
        model_path = model_folder(svc, model)[0] / path
        replaced = model_path.lstat().st_size if model_path.is_file() and not model_path.is_symlink() else 0
        if model.run is None:
            return _bytes_under(svc.files / MODELS / model.id) - replaced
        run = svc.tracker.runs.get(model.run).run_id
        return _artifact_bytes(svc, run) + _model_bytes(svc, run) - replaced

    return _room_left(svc, f"run {model.run}" if model.run else f"model {model.id}", used)


def model_folder(svc: Services, model: LoggedModelRecord) -> tuple[Path, Path]:
    """In the folder of the run that logged it, if its relay took the files; else the server's own. And below which root it lies."""
    dir = folder_of(svc, svc.tracker.runs.get(model.run).folder) if model.run else None
    if dir and (there := dir.models / model.id).is_dir():
        return there, dir.root
    return svc.files / MODELS / model.id, svc.files


def _room_left(svc: Services, whose: str, count: Callable[[], int]) -> int:
    quota = svc.context.settings.server.artifacts << 20
    if not quota:
        return LARGEST
    used = count()
    if used >= quota:
        raise TooLarge(
            f"the files of {whose} use {used} bytes; the limit for all of them is {quota}", hint="delete some, or ask for a higher limit"
        )
    return min(LARGEST, quota - used)


def _artifact_bytes(svc: Services, run: str, but: str | None = None) -> int:
    return sum(one.bytes or 0 for one in artifacts_of(svc.tracker, run) if one.stored and one.path != but)


def _model_bytes(svc: Services, run: str) -> int:
    dir = folder_of(svc, svc.tracker.runs.get(run).folder)
    places = [svc.files / MODELS, *([dir.models] if dir else [])]
    return sum(_bytes_under(path / id) for id in svc.tracker.models.made_by(run) for path in places)


def _bytes_under(folder: Path) -> int:
    """Of all files there, links not followed; one that goes away meanwhile counts nothing."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(at, name)).st_size
    return total


def files_of(svc: Services, run: str, folder: str | None, *, largest: int = LARGEST) -> ArtifactFiles:
    """Where files of a run go: into its folder, else into the server's own."""
    found = folder_of(svc, folder) or _by_hand(svc, folder)
    if found is None:
        return ArtifactFiles(svc.files / run, root=svc.files, largest=largest, private=True)
    return ArtifactFiles(found.artifacts, root=found.root, largest=largest)


def _by_hand(svc: Services, folder: str | None) -> RunDir | None:
    """The folder of a training that nobody submitted: right under `by-hand` of one of our roots."""
    path = Path(folder or "")
    room = path.parent
    ours = room.name == contract.UNMANAGED_FOLDER and room.parent in svc.context.roots and path.name not in ("", ".", "..")
    return RunDir(path) if ours and not path.is_symlink() and not room.is_symlink() and path.is_dir() else None
