"""The home of a run: the one folder it lives in. A copy of that folder has the same id, and is not the run.

A run's jobs, and what its legs left on nodes, are found by its id. So whoever is about to touch them first asks whether the run lives
in this folder. `params/home.json` names the folder and its inode; a run of an earlier version has no such file, and its newest job
script names the folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from onward.errors import CopiedFolder
from onward.rundir.files.no_links import names_beneath, read_beneath
from onward.rundir.layout import RunDir, leg_of
from onward.rundir.root.presence import Presence, presence_of
from onward.sdk.atomic_files import write_whole

_LARGEST = 1 << 20  # bytes of a record or a job script
_SCRIPT = re.compile(r"^leg-\d+\.sh$")
_RUN_LINE = re.compile(r"^run=(.*?)\narchive=", re.MULTILINE | re.DOTALL)


class Residence(StrEnum):
    """What a folder is to its run."""

    HOME = "home"
    COPY = "copy"  # the run lives in another folder, which is there
    MOVED = "moved"  # the home under another name: its inode is the same
    LOST_HOME = "lost home"  # the run has left its home, perhaps for this folder; but this may also be an older copy
    UNKNOWN = "unknown"  # the folder that holds the home cannot be seen now


@dataclass(frozen=True, kw_only=True)
class Home:
    path: Path
    inode: int | None  # None: a job script named the path


@dataclass(frozen=True, kw_only=True)
class FolderResidence:
    """`home`: the folder that the record names."""

    kind: Residence
    home: Path


def record_home(run: RunDir) -> None:
    """From now on the run lives in this folder."""
    write_whole(run.home, json.dumps({"path": str(run.path), "inode": os.stat(run.path).st_ino}))


def residence_of(run: RunDir) -> FolderResidence:
    """Raises OSError where the record cannot be read now."""
    home = recorded_home(run)
    if home is None or home.path == run.path:
        return FolderResidence(kind=Residence.HOME, home=run.path)
    return FolderResidence(kind=_kind(run, home), home=home.path)


def refuse_copy(run: RunDir) -> None:
    """Raise CopiedFolder where the run surely lives in another folder."""
    found = residence_of(run)
    if found.kind is Residence.COPY:
        raise copied_folder(run, found.home)


def home_elsewhere(run: RunDir) -> Path | None:
    """The folder that the run lives in, if that is surely another one. None also where the record cannot be read."""
    try:
        found = residence_of(run)
    except OSError:
        return None
    return found.home if found.kind is Residence.COPY else None


def copied_folder(run: RunDir, home: Path) -> CopiedFolder:
    return CopiedFolder(
        f"{run.path} is a copy of {home}: the run, its jobs and its files on nodes belong to that folder",
        hint=f"name {home} to act on the run; `onward clone {run.path}` makes a new run of the copy. To replace the run by the copy, "
        f"delete or rename {home} first",
    )


def recorded_home(run: RunDir) -> Home | None:
    """None where nothing tells: in a run that has no job yet, or whose record is damaged."""
    try:
        note = json.loads(read_beneath(run.root, run.home, most=_LARGEST))
        return Home(path=Path(str(note["path"])), inode=int(note["inode"]))
    except FileNotFoundError:
        return _home_in_script(run)
    except (ValueError, KeyError, TypeError):
        return None


def _home_in_script(run: RunDir) -> Home | None:
    try:
        scripts = [name for name in names_beneath(run.root, run.params) if _SCRIPT.match(name)]
        if not scripts:
            return None
        newest = max(scripts, key=lambda name: leg_of(name) or 0)
        text = read_beneath(run.root, run.params / newest, most=_LARGEST).decode()
        named = _RUN_LINE.search(text)
        words = shlex.split(named[1]) if named else []
    except (FileNotFoundError, ValueError):
        return None
    return Home(path=Path(words[0]), inode=None) if len(words) == 1 else None


def _kind(run: RunDir, home: Home) -> Residence:
    mine, other = os.stat(run.path), RunDir(home.path)
    presence = presence_of(other)
    if presence is Presence.THERE:
        try:
            if os.path.samestat(mine, os.stat(home.path)):
                return Residence.HOME  # one folder with two names
            if _may_hold_the_same_run(run, other):
                return Residence.COPY
        except FileNotFoundError:  # it was just removed
            pass
        presence = Presence.GONE
    if home.inode == mine.st_ino:
        return Residence.MOVED
    return Residence.LOST_HOME if presence is Presence.GONE else Residence.UNKNOWN


def _may_hold_the_same_run(run: RunDir, other: RunDir) -> bool:
    """Also where one of their specs is damaged."""
    ids = {_id_of(run), _id_of(other)} - {None}
    return len(ids) < 2


def _id_of(run: RunDir) -> str | None:
    try:
        return str(json.loads(read_beneath(run.root, run.spec))["id"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
