"""The run folders of all roots: which of them to look at in this round, and which of them others have to look after."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from onward.rundir.layout import RunDir, dated_under
from onward.rundir.root.presence import is_seen
from onward.rundir.root.reopened_runs import reopened, reopened_folder
from onward.sdk import contract
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.ingest.folders.rotation import FolderMark, FolderRotation

OVER = ("finished", "failed", "cancelled")
_AGAIN = 2  # more readings of marks after a change: one may come within the same tick of the disk's clock
_IN_THE_MAKING = 3600.0  # seconds for which a folder without a run in it may become one


@dataclass(frozen=True, kw_only=True)
class OpenFolders:
    """`runs`: those that are not known to be over, and a few of those that are. `others`: folders that hold no run, such as pipelines."""

    runs: list[RunDir]
    others: list[Path]


@dataclass(frozen=True, kw_only=True)
class FolderVisit:
    """One folder whose turn it is. `mark`: of one at rest, as it was left."""

    dir: RunDir
    by_hand: bool
    mark: FolderMark | None
    rounds: FolderRotation
    bare: set[Path]
    lock: threading.Lock

    def is_there(self) -> bool:
        """Whether there is a run in it. One that may become a run is looked at again soon, any other when its turn comes."""
        path = self.dir.path
        there = self.dir.spool.is_dir() if self.by_hand else self.dir.is_run()
        with self.lock:
            if there:
                self.bare.discard(path)
                return True
            if not self.by_hand:
                self.bare.add(path)
        with suppress(FileNotFoundError):  # deleted since it was listed
            if time.time() - path.stat().st_mtime > _IN_THE_MAKING:
                self.rest(None)
        return False

    def rest(self, mark: FolderMark | None) -> None:
        with self.lock:
            self.rounds.rest(self.dir.path.name, mark)

    def wake(self) -> None:
        with self.lock:
            self.rounds.wake(self.dir.path.name)


class RunFolders:
    def __init__(self, database: Database, *, settled: float) -> None:
        """`settled`: seconds after its last change from which on a run that is over is left alone."""
        self._database = database
        self._settled = settled
        self._resting: dict[str, list[str]] | None = None  # as the store knew them when this process began, by parent
        self._rounds: dict[Path, FolderRotation] = {}
        self._marks: dict[Path, tuple[int, int]] = {}  # when the folder of marks of a root had changed; how often to read it again
        self._bare: set[Path] = set()
        self._swept: dict[Path, RunDir] = {}
        self._lock = threading.Lock()  # held for moments: a look takes long where there is much to read, and nobody waits for it

    def visits(self, roots: Iterable[Path], problems: list[str]) -> list[FolderVisit]:
        """All are listed before the first is looked at: whatever fails there, `open_folders` knows them all."""
        found: list[FolderVisit] = []
        with self._lock:
            for root in roots:
                ours = self._rounds_of(root, by_hand=False)
                try:
                    if not is_seen(root):  # not mounted, or not used yet: what is known of it stays known
                        continue
                except OSError as error:
                    problems.append(f"{root} cannot be listed: {error.strerror or error}")
                    continue
                self._wake_reopened(root, ours)
                for rounds, by_hand in ((ours, False), (self._rounds_of(root / contract.UNMANAGED_FOLDER, by_hand=True), True)):
                    try:
                        found += self._round(rounds, by_hand=by_hand)
                    except OSError as error:
                        problems.append(f"{rounds.parent} cannot be listed: {error.strerror or error}")
        return found

    def visit(self, dir: RunDir) -> FolderVisit:
        """Of one run's folder, whenever it is asked for; what lies beside it is not listed."""
        with self._lock:
            return self._visit(self._rounds_of(dir.root, by_hand=False), dir, by_hand=False)

    def knows(self, path: Path) -> bool:
        """Whether a folder was there when its root was last listed. Of a root that is not looked at: no."""
        with self._lock:
            rounds = self._rounds.get(path.parent)
            return rounds is not None and rounds.knows(path.name)

    def open_folders(self) -> OpenFolders | None:
        """None before the first look."""
        with self._lock:
            return self._open() if self._rounds else None

    def _open(self) -> OpenFolders:
        swept, self._swept = self._swept, {}
        awake = {r.parent / name: None for r in self._rounds.values() if r.parent.name != contract.UNMANAGED_FOLDER for name in r.awake}
        self._bare -= {path for path in self._bare if (r := self._rounds.get(path.parent)) is None or not r.knows(path.name)}
        runs = [RunDir(path) for path in {**dict.fromkeys(swept), **awake} if path not in self._bare]
        return OpenFolders(runs=sorted(runs, key=lambda run: run.path.name[:10]), others=sorted(self._bare))

    def _round(self, rounds: FolderRotation, *, by_hand: bool) -> Iterator[FolderVisit]:
        for name in rounds.due():
            dir = RunDir(rounds.parent / name)
            if rounds.rests(name) and not by_hand:
                self._swept[dir.path] = dir
            yield self._visit(rounds, dir, by_hand=by_hand)

    def _visit(self, rounds: FolderRotation, dir: RunDir, *, by_hand: bool) -> FolderVisit:
        mark = rounds.mark(dir.path.name)
        return FolderVisit(dir=dir, by_hand=by_hand, mark=mark, rounds=rounds, bare=self._bare, lock=self._lock)

    def _rounds_of(self, parent: Path, *, by_hand: bool) -> FolderRotation:
        if parent not in self._rounds:
            if self._resting is None:
                self._resting = self._known_to_be_over()
            resting = self._resting.pop(str(parent), [])
            self._rounds[parent] = FolderRotation(parent, _all_names if by_hand else _dated_names, resting=resting)
        return self._rounds[parent]

    def _known_to_be_over(self) -> dict[str, list[str]]:
        """But not those that changed in the last minutes of whoever served before: something of them may have come after it had ended."""
        found: dict[str, list[str]] = {}
        c = schema.runs.c
        with self._database.reading() as connection:
            newest = connection.execute(select(func.max(c.updated))).scalar() or 0.0
            old = (c.state.in_(OVER), c.folder.is_not(None), c.updated < newest - self._settled)
            for (folder,) in connection.execution_options(yield_per=1000).execute(select(c.folder).where(*old)):
                parent, name = os.path.split(folder)
                found.setdefault(parent, []).append(name)
        return found

    def _wake_reopened(self, root: Path, rounds: FolderRotation) -> None:
        try:
            changed = os.stat(reopened_folder(root)).st_mtime_ns
        except OSError:
            return
        before, left = self._marks.get(root, (-1, 0))
        left = _AGAIN if before != changed else left - 1
        self._marks[root] = (changed, max(left, -1))
        if left >= 0:
            for name in reopened(root):
                rounds.wake(name)


def _dated_names(root: Path) -> list[str]:
    return [path.name for path in dated_under(root)]


def _all_names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))
