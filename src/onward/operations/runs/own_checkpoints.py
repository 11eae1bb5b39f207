"""The checkpoints that a training keeps by itself: which files, and whether Onward has published them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from onward.checkpoints.manifest import OWN, Manifest, read_manifest
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.watching.linked_paths import own_paths
from onward.errors import CheckpointDamaged
from onward.operations.runs.record import read_folder
from onward.rundir.layout import RunDir
from onward.supervisor.own_files.working_folder import stamps
from onward.supervisor.preparation.environment import working_folder

_MOST_FILES = 100


def own_checkpoints(dir: RunDir) -> list[dict[str, Any]]:
    """Those that its paths name, and those that it was seen to write; the newest first.

    `published`: yes, older (another version is), or no; with the `step` of the newest checkpoint that was made of such files.
    """
    run = read_folder(dir)
    working = working_folder(run.spec, dir)
    saved = [name for leg in run.legs.values() for event in reversed(leg.self_saved) for name in event.files]
    names = dict.fromkeys([*own_paths(working, run.spec.checkpoints.paths), *saved])
    newest = _newest_published(dir)
    found = [
        {
            "path": name,
            "bytes": size,
            "modified": written / 1e9,
            "published": (state := _published(newest, name, size, written)),
            "step": newest.step if newest and state != "no" else None,
        }
        for name, (size, written, _) in stamps(islice(names, _MOST_FILES), working).items()
    ]
    return sorted(found, key=lambda file: file["modified"], reverse=True)


def _newest_published(dir: RunDir) -> Manifest | None:
    for name in reversed(published_names_of(dir.checkpoints)):
        try:
            manifest = read_manifest(dir.checkpoints / Path(str(name)))
        except CheckpointDamaged:
            continue
        if manifest.made_by == OWN:
            return manifest
    return None


def _published(newest: Manifest | None, name: str, size: int, written: int) -> str:
    entry = newest.files.get(name) if newest else None
    if entry is None:
        return "no"
    return "yes" if (entry.size, entry.written) == (size, written) else "older"
