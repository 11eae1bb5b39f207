"""Roots that this user has submitted runs to, remembered so that runs are found from any folder; and the folders they were submitted from.

One small file per folder in the state folder, so that nothing needs a lock. Nothing depends on it: without a state folder, runs are looked
for where the settings say, and that is all.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from onward.errors import OnwardError
from onward.schedulers.state_folder import state_folder
from onward.sdk.atomic_files import write_whole

ROOTS, CODE = "roots", "code-folders"
MOST = 100
_FRESH = 86400.0  # seconds: a root in use is noted once a day
_PATIENCE = 3.0  # seconds for a root's storage to answer
_LARGEST = 16384  # bytes of a note
_NAMED = 5
_hanging: dict[Path, _Look] = {}  # looks that the storage has not answered: one a root, however often it is looked


@dataclass(frozen=True, kw_only=True)
class RootNote:
    root: str
    inode: int
    device: int
    host: str


class RootState(StrEnum):
    THERE = "there"
    REMOVED = "removed"  # what it lay in is seen, without it
    AWAY = "away"  # another machine's, or its storage is not mounted
    SILENT = "silent"  # its storage does not answer
    FOREIGN = "foreign"  # another user has made a folder of that name since


@dataclass(frozen=True, kw_only=True)
class RememberedRoot:
    path: Path
    note: Path  # the file that remembers it
    state: RootState

    @property
    def problem(self) -> str:
        """Why its runs are not shown, in words; empty where they are, or where nothing is wrong."""
        match self.state:
            case RootState.REMOVED:
                return f"the runs folder {self.path} was removed; it is forgotten"
            case RootState.SILENT:
                return f"the runs folder {self.path} does not answer; its runs are not shown"
            case RootState.FOREIGN:
                return f"the runs folder {self.path} was replaced by another user's; its runs are not shown. To forget it: rm {self.note}"
            case _:
                return ""


def remember_root(env: Mapping[str, str], root: Path, kind: str = ROOTS) -> None:
    """Called for every run that is submitted. What cannot be remembered is no failure. `kind`: of which folders it is one."""
    try:
        note = _folder(env, kind) / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.json"
        seen = root.stat()
        root_note = json.dumps(asdict(RootNote(root=str(root), inode=seen.st_ino, device=seen.st_dev, host=socket.gethostname())))
        if note.exists() and time.time() - note.stat().st_mtime < _FRESH and note.read_text() == root_note:
            return
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(note, root_note, mode=0o600)
        for old in _notes(note.parent)[MOST:]:
            old.unlink(missing_ok=True)
    except (OSError, OnwardError):
        return


def remembered_roots(env: Mapping[str, str], kind: str = ROOTS) -> list[RememberedRoot]:
    """Those used last first. Each is looked at in a thread of its own: storage that hangs must not keep the others from being seen."""
    try:
        notes = _notes(_folder(env, kind))[:MOST]
    except (OSError, OnwardError):
        return []
    looks = [_hanging.get(path) or _Look(path, note) for path in notes if (note := _read(path))]
    give_up = time.monotonic() + _PATIENCE
    for look in looks:
        if look.note not in _hanging:  # else it was waited for before
            look.join(max(0.0, give_up - time.monotonic()))
    for look in looks:
        if look.is_alive():
            _hanging[look.note] = look
        else:
            _hanging.pop(look.note, None)
    return [RememberedRoot(path=Path(look.root_note.root), note=look.note, state=look.state) for look in looks]


def forget_removed(roots: Iterable[RememberedRoot]) -> list[str]:
    """What is worth telling of them; a folder that was removed is told of once."""
    for root in roots:
        if root.state is RootState.REMOVED:
            try:
                root.note.unlink(missing_ok=True)
            except OSError:
                continue
    return [root.problem for root in roots if root.problem]


def notes_mark(env: Mapping[str, str]) -> int:
    """Changes when a root was added or forgotten."""
    try:
        return _folder(env).stat().st_mtime_ns
    except (OSError, OnwardError):
        return 0


def roots_text(roots: Sequence[str], word: str = "or") -> str:
    """Where was looked, for people."""
    named = [*roots[:_NAMED], *([f"{len(roots) - _NAMED} more"] if len(roots) > _NAMED else [])]
    return f" {word} ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)


class _Look(threading.Thread):
    def __init__(self, note: Path, root_note: RootNote) -> None:
        super().__init__(name="look at a root", daemon=True)
        self.note = note
        self.root_note = root_note
        self.state = RootState.SILENT
        self.start()

    def run(self) -> None:
        self.state = _state(self.root_note)


def _state(root_note: RootNote) -> RootState:
    root = Path(root_note.root)
    try:
        seen = root.stat()
        if not stat.S_ISDIR(seen.st_mode):
            raise NotADirectoryError(root)
        if seen.st_uid != _me() and seen.st_ino != root_note.inode:
            return RootState.FOREIGN
        return RootState.THERE if os.access(root, os.R_OK | os.X_OK) else RootState.AWAY
    except (FileNotFoundError, NotADirectoryError):
        return RootState.REMOVED if root_note.host == socket.gethostname() and _device_above(root) == root_note.device else RootState.AWAY
    except OSError:
        return RootState.AWAY


def _device_above(root: Path) -> int | None:
    """Of the nearest folder above that is there: the root's own, unless its storage is not mounted."""
    for folder in root.parents:
        try:
            return folder.stat().st_dev
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
    return None


def _folder(env: Mapping[str, str], kind: str = ROOTS) -> Path:
    return state_folder(env) / kind


def _notes(folder: Path) -> list[Path]:
    """The newest first."""
    with os.scandir(folder) as entries:
        notes = [entry for entry in entries if entry.name.endswith(".json") and not entry.name.startswith(".")]
        found = [(entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in notes]
    return [Path(path) for _, path in sorted(found, reverse=True)]


def _read(path: Path) -> RootNote | None:
    """Only what this user wrote: nobody else decides where our runs are looked for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            if os.fstat(handle).st_uid != _me():
                return None
            note = RootNote(**json.loads(file.read(_LARGEST)))
    except (OSError, ValueError, TypeError):
        return None
    return note if isinstance(note.root, str) and note.root.startswith("/") else None


def _me() -> int:
    return os.getuid()
