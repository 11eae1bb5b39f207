"""From a run's record to its folder. A record may come from anywhere; only folders right under our own roots are ever opened."""

from __future__ import annotations

from pathlib import Path

from onward.api.services import Services
from onward.errors import NotFound, TooLarge
from onward.rundir.layout import RunDir
from onward.sdk import contract
from onward.tracker.artifact_files import ArtifactFiles
from onward.tracker.artifact_store import artifacts_of

LARGEST = 64 << 30  # bytes of one uploaded file


def folder_of(svc: Services, folder: str | None) -> RunDir | None:
    """The run's folder, if it has one that this server may look into."""
    if not folder:
        return None
    path = Path(folder)
    dir = RunDir(path)
    if path.is_symlink() or path.parent not in svc.desk.roots or path.name in ("", ".", ".."):
        return None
    return dir if dir.is_run() else None


def must_have_folder(svc: Services, run: str, folder: str | None) -> RunDir:
    found = folder_of(svc, folder)
    if found is None:
        raise NotFound(
            f"run {run} has no folder that this server can see",
            hint="only runs that Onward executes have one, under the roots of the settings",
        )
    return found


def room_for(svc: Services, run: str, path: str) -> int:
    """How large a file of this path may be: what the run's other uploads leave of `server.artifacts`."""
    quota = svc.desk.settings.server.artifacts << 20
    if not quota:
        return LARGEST
    used = sum(one.bytes or 0 for one in artifacts_of(svc.tracker, run) if one.stored and one.path != path)
    if used >= quota:
        raise TooLarge(f"the files of run {run} take {used} bytes; all together may take {quota}", hint="delete some, or ask for more room")
    return min(LARGEST, quota - used)


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
    ours = room.name == contract.BY_HAND and room.parent in svc.desk.roots and path.name not in ("", ".", "..")
    return RunDir(path) if ours and not path.is_symlink() and not room.is_symlink() and path.is_dir() else None
