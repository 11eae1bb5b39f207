"""Run folders read into a tracker in a temporary file, which lasts as long as the screen: by the same ingest as the server's.

A thread reads the folders that are asked about, and no others. Whoever asks waits a moment for it, and takes what is there by then.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from onward.rundir.layout import RunDir

if TYPE_CHECKING:
    from onward.tracker.store import Tracker
    from onward.tui.sources.tracked_metrics import TrackedMetrics

_PATIENCE = 0.2  # seconds
_LAST = 1.0  # seconds that the thread has to end


class FolderIngest:
    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._wanted: tuple[RunDir, ...] = ()
        self._asked = self._answered = 0
        self.reading = False
        self._more = False  # something of what is wanted is left to read
        self._trouble: Exception | None = None
        self._closed = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tracker: Tracker | None = None
        self._metrics: TrackedMetrics | None = None
        self._thread: threading.Thread | None = None

    def read(self, dirs: Sequence[RunDir]) -> TrackedMetrics | None:
        """Have what is new in these folders taken; `reading` then says whether more is to come. None while the tracker is being made."""
        with self._turn:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="folder ingest", daemon=True)
                self._thread.start()
            self._wanted, self._asked = tuple(dirs), self._asked + 1
            asked = self._asked
            self._turn.notify_all()
            answered = self._turn.wait_for(lambda: self._answered >= asked, _PATIENCE)
            if self._trouble is not None:
                raise self._trouble
            self.reading = self._more or not answered
            return self._metrics

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        if self._thread is not None:
            self._thread.join(_LAST)
        if self._folder is not None:
            self._folder.cleanup()

    # ── the thread ────────────────────────────────────────────────────────────

    def _work(self) -> None:
        with ExitStack() as opened:
            while (turn := self._next_turn()) is not None:
                asked, dirs = turn
                more, trouble = False, None
                try:
                    more = self._look(dirs, opened)
                except Exception as error:  # whoever asks hears of it, and the next question tries again
                    trouble = error
                with self._turn:
                    self._answered, self._more, self._trouble = asked, more, trouble
                    self._turn.notify_all()

    def _next_turn(self) -> tuple[int, tuple[RunDir, ...]] | None:
        with self._turn:
            self._turn.wait_for(lambda: self._closed or self._more or self._answered < self._asked)
            return None if self._closed else (self._asked, self._wanted)

    def _look(self, dirs: Sequence[RunDir], opened: ExitStack) -> bool:
        """Whether something is left to read."""
        if self._tracker is None:
            from onward.tracker.store import Tracker  # takes half a second, in which the list of runs shows already
            from onward.tui.sources.tracked_metrics import TrackedMetrics

            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="onward-top-", ignore_cleanup_errors=True)
            self._tracker = opened.enter_context(Tracker.open(Path(self._folder.name) / "top.db"))
            self._metrics = TrackedMetrics(self._tracker)
        more = False
        for dir in dirs:
            if self._closed:
                break
            more |= self._tracker.files.look_at([dir]).more
        return more
