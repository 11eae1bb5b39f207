"""Whether a training is in the middle of a save: then it is let finish it, however long ago it was asked to stop."""

from __future__ import annotations

import os
from pathlib import Path

from onward.checkpoints.watch import any_open
from onward.sdk import contract

_GIVEN_UP = 600.0  # seconds: a folder in which nothing happens for so long was left behind, and is no save any more


def being_saved(folder: Path, *, now: float) -> bool:
    """Something is being written into a folder of `run.checkpoint()`, or to a file that the training saves by itself."""
    partial = [
        entry for place in (folder, folder / contract.SHARES) for entry in _entries(place) if entry.name.startswith(contract.PARTIAL_PREFIX)
    ]
    if any(now - _last_change(Path(entry.path)) < _GIVEN_UP for entry in partial):
        return True
    loose = [Path(where) / name for entry in _entries(folder) if not entry.name.startswith(".") for where, name in _files(entry)]
    return bool(loose) and any_open(loose)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _files(entry: os.DirEntry[str]) -> list[tuple[str, str]]:
    if not entry.is_dir():
        return [(os.path.dirname(entry.path), entry.name)]
    return [(where, name) for where, _, names in os.walk(entry.path) for name in names]


def _last_change(folder: Path) -> float:
    newest = 0.0
    for where, _, names in os.walk(folder):
        for path in (where, *(os.path.join(where, name) for name in names)):
            try:
                newest = max(newest, os.stat(path).st_mtime)
            except OSError:
                continue  # going away under our eyes
    return newest
