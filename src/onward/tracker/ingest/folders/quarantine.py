"""Folders that cannot be read as runs: each is set aside with its reason, and tried again later, or as soon as it changes.

One bad folder must cost neither the others nor much time. What is set aside is stored, so that every server can show it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, select

from onward.errors import OnwardError
from onward.model.storable_text import clean
from onward.rundir.layout import RunDir
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.runs.legs import upsert

_FIRST, _LONGEST = 2.0, 600.0  # seconds until a folder that did not change is tried again: twice as long each time
_MOST_WORDS = 1000
_table = schema.quarantine

_Mark = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True, kw_only=True)
class Quarantined:
    folder: str
    reason: str
    since: float


@dataclass(kw_only=True)
class _Held:
    reason: str
    tries: int = 0
    again: float = 0.0
    mark: _Mark = ()


class Quarantine:
    def __init__(self, database: Database, writer: Writer, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._writer = writer
        self._now = now
        self._held: dict[str, _Held] | None = None
        self._guard = threading.Lock()

    def listed(self) -> list[Quarantined]:
        """All, by folder: as any server of this database has stored them."""
        with self._database.reading() as connection:
            rows = connection.execute(select(_table).order_by(_table.c.folder)).mappings()
            return [Quarantined(**row) for row in rows]

    def rests(self, dir: RunDir) -> bool:
        """Whether to leave the folder alone for now: it is set aside, has not changed, and its time has not come."""
        held = self._all().get(_key(dir.path))
        return held is not None and self._now() < held.again and held.mark == _mark(dir)

    def put(self, dir: RunDir, error: Exception) -> str | None:
        """Set a folder aside. The words to log, where they are new."""
        key = _key(dir.path)
        reason = _words(error).replace(f"{key}/", "")
        mark = _mark(dir)
        before = self._all().get(key)
        tries = before.tries + 1 if before else 1
        self._all()[key] = _Held(reason=reason, tries=tries, again=self._now() + min(_FIRST**tries, _LONGEST), mark=mark)
        if before is not None and before.reason == reason:
            return None
        row = {"folder": key, "reason": reason, "since": self._now()}
        self._writer.do(lambda batch: upsert(batch, _table, [row], keys=("folder",), change=("reason", "since")))
        return f"{key} cannot be read as a run: {reason}"

    def release(self, dir: RunDir) -> bool:
        """It can be read again, or is gone. Whether it was set aside."""
        return self._forget([key]) if (key := _key(dir.path)) in self._all() else False

    def keep_only(self, is_there: Callable[[Path], bool]) -> None:
        """Forget folders that are no longer there."""
        gone = [key for key in self._all() if not is_there(Path(key))]
        if gone:
            self._forget(gone)

    def _forget(self, keys: list[str]) -> bool:
        def job(batch: Batch) -> None:
            batch.connection.execute(delete(_table).where(_table.c.folder.in_(keys)))

        self._writer.do(job)
        for key in keys:
            self._all().pop(key, None)
        return True

    def _all(self) -> dict[str, _Held]:
        """With what was set aside before this process began, which is tried at once."""
        with self._guard:
            if self._held is None:
                self._held = {one.folder: _Held(reason=one.reason) for one in self.listed()}
            return self._held


def _key(path: Path) -> str:
    return clean(str(path))[:1000]


def _words(error: Exception) -> str:
    """What is wrong, in one line that a page can show."""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, RecursionError):
        text = "it contains something that is nested too deeply"
    elif isinstance(error, OnwardError):
        text = f"{error.message}; {error.hint}" if error.hint else error.message
    elif isinstance(error, ValueError):
        text = str(error)
    else:
        text = f"it contains a value of another type than Onward writes ({error})"
    return clean(" ".join(text.split()))[:_MOST_WORDS]


def _mark(dir: RunDir) -> _Mark:
    """By what a change of the folder is seen."""
    return tuple(map(_seen, (dir.path, dir.params, dir.spec, dir.journals, dir.spool)))


def _seen(path: Path) -> tuple[int, int, int, int] | None:
    try:
        seen = os.lstat(path)
    except (OSError, ValueError):
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size
