"""Whether a run folder is there, surely deleted, or only not to be seen now.

A shared file system that is not mounted looks like an empty folder, or like none. So a missing folder counts as deleted only while its
root is seen to be the real one: by the mark of that very run where it has one, else by anything of Onward's in the root.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from onward.rundir.layout import RunDir, is_dated
from onward.rundir.root.layout import OWN
from onward.sdk import contract


class Presence(StrEnum):
    THERE = "there"
    GONE = "gone"  # its root is seen, without it
    UNKNOWN = "unknown"  # its root is not seen: nothing follows from that


def presence_of(run: RunDir, *, root: Path | None = None, mark: Path | None = None) -> Presence:
    """`root`: where the run is kept, if that is not the folder above it. `mark`: a file in that root which was there before the run, or
    made with it, and stays when the run's folder is deleted."""
    try:
        if run.is_run():
            return Presence.THERE
        seen = mark.is_file() if mark is not None else is_seen(root or run.path.parent)
        return Presence.GONE if seen and not run.is_run() else Presence.UNKNOWN  # looked at again: it may have been mounted meanwhile
    except OSError:
        return Presence.UNKNOWN


def is_deleted(run: RunDir) -> bool:
    """Whether somebody surely deleted the folder, or moved it away. One that only lacks its spec is damaged, and still there."""
    try:
        os.lstat(run.params)
        return False
    except FileNotFoundError:
        return presence_of(run, root=run.root) is Presence.GONE
    except OSError:
        return False


def is_seen(root: Path) -> bool:
    """Whether this is a root with something of Onward's in it, and not a bare mount point. OSError where it cannot be read."""
    try:
        if (root / OWN).is_dir():  # in every root that this version has used: one question, however many runs there are
            return True
        with os.scandir(root) as entries:
            return any(entry.name == contract.UNMANAGED_FOLDER or is_dated(entry.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
