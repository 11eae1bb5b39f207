"""Files of runs, as servers see them: the same as on a node (`rundir/artifact_files.py`)."""

from __future__ import annotations

from onward.rundir.artifact_files import ArtifactFiles, StoredFile, components, servable

__all__ = ["ArtifactFiles", "StoredFile", "components", "servable"]
