"""Branch: a copy of one run's checkpoint as the beginning of another run."""

from __future__ import annotations

from pathlib import Path

from onward.checkpoints.manifest import Manifest, check_sizes, read_manifest
from onward.checkpoints.publishing.delete_old import delete
from onward.checkpoints.publishing.publish import publish
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import CheckpointName


def branch(folder: Path, store: Path) -> Manifest:
    """Publish a copy of the checkpoint in `folder` as that of leg 0, which every leg of the run is newer than. Every byte is compared."""
    given = read_manifest(folder)
    check_sizes(folder, given)
    name = CheckpointName(0, given.step)
    sources = {relative: folder / relative for relative in given.files}
    made = publish(sources, store, name, created=given.created, made_by=given.made_by, metrics=given.metrics, algorithm=given.algorithm)
    if made.files != given.files:
        delete(store, name)
        raise CheckpointDamaged(f"{folder.name}: its files do not match the hashes in its manifest", hint="branch from an older checkpoint")
    return made
