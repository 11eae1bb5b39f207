"""Files of runs, as servers see them: the same as on a node (`rundir/files/artifacts.py`)."""

from __future__ import annotations

from onward.rundir.files.artifacts import ArtifactFiles, StoredFile, components, servable

__all__ = ["ArtifactFiles", "StoredFile", "components", "servable"]
