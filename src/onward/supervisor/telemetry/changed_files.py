"""Which files of a living leg have something new to push, without asking shared storage for all of them each time.

What a leg writes lies on its node first, where looking costs nothing. In the run's folder only the leg's own journal grows meanwhile, and
new files may come beside it. The whole folder is looked at now and then, the seldomer the more files there are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from onward.rundir.layout import LegLocal, RunDir, leg_of
from onward.rundir.mirror import mirror_path
from onward.supervisor.stop.run_folder_watch import ChangedFolder
from onward.supervisor.telemetry.push_files import (
    ARTIFACTS,
    EVENTS,
    JOURNAL,
    LOGS,
    SPOOL,
    FileToPush,
    PushAreas,
    files,
    push_areas,
    records,
)

_WHOLE_EVERY = 60.0  # seconds; and at least one for each file that was found
_JOURNAL_EVERY = 4.0
_ARTIFACTS_SOON = 20.0  # seconds after files were handed over on the node


class ChangedPushFiles:
    def __init__(self, run: RunDir, local: LegLocal, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._run, self._local = run, local
        self._places: dict[Path, str] = {}  # TensorBoard's files on the node, and their names in the run's folder
        self._all = push_areas(run, local)
        self._near: PushAreas = {SPOOL: [local.spool], LOGS: [local.logs], EVENTS: [local.tensorboard]}
        self._journal = run.leg_journal(leg_of(local.path.name) or 1)
        self._journals = ChangedFolder(run.journals, now=now, anyway=float("inf"))
        self._handed_over = (local.artifacts, local.models)
        self._stamp: tuple[object, ...] = ()
        self._records_at = self._journal_at = self._files_at = 0.0
        self._soon = False
        self._kept: dict[str, list[FileToPush]] = {}  # of the last look at the whole folder, what is not all sent yet

    def records(self) -> list[FileToPush]:
        now = self._now()
        look = now >= self._journal_at
        if look:
            self._journal_at = now + _JOURNAL_EVERY
        if now >= self._records_at or (look and self._journals.changed()):
            self._journals.changed()  # as it is now
            found = records(self._all)
            self._records_at = now + max(_WHOLE_EVERY, len(found))
            self._kept[JOURNAL] = found
            return found
        return [*self._kept.get(JOURNAL, ()), *(self._own_journal() if look else ()), *records(self._near)]

    def files(self) -> list[FileToPush]:
        now = self._now()
        stamp = tuple((where, _changed(where)) for top in self._handed_over for where, _, _ in os.walk(top))
        self._soon = self._soon or stamp != self._stamp
        self._stamp = stamp
        if now >= self._files_at - (_WHOLE_EVERY - _ARTIFACTS_SOON if self._soon else 0):
            self._soon = False
            found = list(files(self._all))
            self._files_at = now + max(_WHOLE_EVERY, len(found))
            self._kept[ARTIFACTS] = found
            return [*found, *self._near_files()]
        return [*self._near_files(), *self._kept.get(ARTIFACTS, ())]

    def _near_files(self) -> Iterator[FileToPush]:
        for found in files(self._near):
            yield replace(found, name=self._event_name(found.path)) if found.name.startswith(EVENTS) else found

    def _event_name(self, path: Path) -> str:
        """As in the run's folder, where a file of an earlier leg may have the same name."""
        if path not in self._places:
            target = mirror_path(path, self._local, self._run)
            self._places[path] = f"{EVENTS}/{target.relative_to(self._run.tensorboard).as_posix()}"
        return self._places[path]

    def settle(self, is_sent: Callable[[FileToPush], bool]) -> None:
        """After sending, as far as it went."""
        self._kept = {room: [one for one in found if not is_sent(one)] for room, found in self._kept.items()}

    def _own_journal(self) -> list[FileToPush]:
        try:
            size = self._journal.stat().st_size
        except OSError:
            return []
        return [FileToPush(name=f"{JOURNAL}/{self._journal.name}", path=self._journal, size=size, lines=True)]


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
