"""TensorBoard's event files that the training on this node writes elsewhere than into its tensorboard folder: brought there.

Those in the folder for checkpoints lie on the same disk and are linked. Those in the working folder are copied as they grow. They may lie
on shared storage, so they are looked for the seldomer the more there is to look at. A file in a folder that others use too (one that the
code snapshot links to, or that the run was started in) is taken only if its name speaks of a process of this training.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from onward.rundir.event_files.search import EventFileSearch, begun_at, event_file_place, link_event_files, written_by
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import GrowingCopy

LOOK_SECONDS = 5.0
_SEARCH_EVERY = 30.0  # seconds
_COPY_EVERY = 10.0
_REST_PER_REQUEST = 2.0  # seconds between two looks, for each time that a look asks the file system
_MOST_FILES = 200
_MOMENT = 1.0  # second by which a file's name may be rounded


@dataclass(kw_only=True)
class FoundEventFiles:
    """`processes`: those of the training that live now. Times are unix seconds."""

    run: RunDir
    local: LegLocal
    folder: Path  # the working folder
    submitted: float
    began: float  # the leg
    processes: Callable[[], Iterable[int]]
    now: Callable[[], float] = time.monotonic
    _known_processes: set[int] = field(default_factory=set)
    _copies: dict[Path, GrowingCopy] = field(default_factory=dict)
    _settled: set[Path] = field(default_factory=set)  # found, and not to be copied
    _search_at: float = -math.inf
    _copy_at: float = -math.inf
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Called again and again by one thread."""
        with self._busy:
            self._known_processes.update(self.processes())
            link_event_files(self.local)
            if self.now() >= self._search_at:
                self._search()
            if self.now() >= self._copy_at:
                self._copy()

    def finish(self, *, within: float) -> None:
        """The training has gone: once more. Not for longer than this, where the storage hangs."""
        thread = threading.Thread(target=self._finish, name="last look for event files", daemon=True)
        thread.start()
        thread.join(timeout=within)

    def _finish(self) -> None:
        with self._busy:
            self._search()
            self._copy()
            for copy in self._copies.values():
                copy.close()

    def _search(self) -> None:
        search = EventFileSearch(base=self.folder)
        for found in search.files():
            source = self.folder / found
            if source not in self._copies and source not in self._settled and len(self._copies) < _MOST_FILES:
                self._take(source, event_file_place(found))
        self._search_at = self.now() + max(_SEARCH_EVERY, _REST_PER_REQUEST * search.looked)

    def _take(self, source: Path, target: Path) -> None:
        begun = begun_at(source.name)
        if self._is_ours_alone(source.parent):
            seen = source.stat()
            ours = (seen.st_mtime if begun is None else begun) >= self.submitted - _MOMENT
            ours = ours and not self._has(target, seen.st_size)
        elif begun is None or begun < self.began - _MOMENT:
            ours = False
        else:
            ours = written_by(source.name, host=socket.gethostname()) in self._known_processes
        if ours:
            self._copies[source] = GrowingCopy(source, self.local.tensorboard / target, within=self.local.tensorboard, instead=None)
        else:
            self._settled.add(source)

    def _is_ours_alone(self, folder: Path) -> bool:
        return folder.resolve().is_relative_to(self.run.path.resolve())

    def _has(self, target: Path, size: int) -> bool:
        """From an earlier leg."""
        kept = self.run.tensorboard / target
        return kept.exists() and kept.stat().st_size >= size

    def _copy(self) -> None:
        for source, copy in list(self._copies.items()):
            try:
                copy.catch_up(now=self.now())
            except FileNotFoundError:  # the training has removed it
                copy.close()
                del self._copies[source]
                self._settled.add(source)
        self._copy_at = self.now() + max(_COPY_EVERY, _REST_PER_REQUEST * len(self._copies))
