"""Whether a training is in the middle of a save: then it is let finish it, however long ago it was asked to stop."""

from __future__ import annotations

import os
from pathlib import Path

from onward.checkpoints.watching.file_names import is_log, is_record
from onward.checkpoints.watching.open_files import open_for_writing
from onward.sdk import contract

_GIVEN_UP = 600.0  # seconds: a folder in which nothing happens for so long was left behind, and is no save any more


def is_being_saved(folder: Path, *, now: float) -> bool:
    """Something is being written into a folder of `run.checkpoint()`, or to a file that the training saves by itself."""
    partial = [
        entry
        for parent in (folder, folder / contract.SHARES)
        for entry in _entries(parent)
        if entry.name.startswith(contract.PARTIAL_PREFIX)
    ]
    if any(now - _last_change(Path(entry.path)) < _GIVEN_UP for entry in partial):
        return True
    base = os.path.realpath(folder) + "/"
    names = (path.removeprefix(base) for path in open_for_writing(folder))
    return any(not name.startswith(".") and not is_log(name) and not is_record(name) for name in names)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _last_change(folder: Path) -> float:
    newest = 0.0
    for where, _, names in os.walk(folder):
        for path in (where, *(os.path.join(where, name) for name in names)):
            try:
                newest = max(newest, os.stat(path).st_mtime)
            except OSError:
                continue  # going away under our eyes
    return newest
