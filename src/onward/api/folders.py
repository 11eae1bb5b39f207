"""From a run's record to its folder. A record may come from anywhere; only folders right under our own roots are ever opened."""

from __future__ import annotations

from pathlib import Path

from onward.api.services import Services
from onward.errors import NotFound
from onward.rundir.layout import RunDir
from onward.tracker.artifact_files import ArtifactFiles

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


def files_of(svc: Services, run: str, folder: str | None) -> ArtifactFiles:
    """Where files of a run go: into its folder, else into the server's own."""
    found = folder_of(svc, folder)
    return ArtifactFiles(found.artifacts if found else svc.files / run, largest=LARGEST)
