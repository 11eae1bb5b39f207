"""Marks beside the runs: `<root>/.reopened/<folder>` says that a run which was over goes on.

A server does not look at runs that are over. It looks at this one folder, which changes when a mark is made.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from onward.rundir.layout import RunDir

_REOPENED = ".reopened"
_KEPT = 7 * 86400.0  # seconds: a server that was down for longer looks at each run when its turn comes


def mark_reopened(run: RunDir) -> None:
    """A mark that cannot be made is no failure: the server's slow sweep finds the run later."""
    folder = reopened_folder(run.path.parent)
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        mark = folder / run.path.name
        mark.unlink(missing_ok=True)  # made anew, so that the folder changes
        mark.touch()
        _forget_old(folder)


def reopened_folder(root: Path) -> Path:
    return root / _REOPENED


def reopened(root: Path) -> list[str]:
    """The names of the run folders that were marked."""
    try:
        return os.listdir(reopened_folder(root))
    except OSError:
        return []


def _forget_old(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.time() - entry.stat().st_mtime > _KEPT:
                os.unlink(entry.path)
