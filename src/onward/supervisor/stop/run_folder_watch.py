"""What others want of a leg, read from the run's folder: a request to stop, that a later leg has taken over, or that it was deleted.

Shared storage is asked little: one stat every three seconds, and every second time one more. A network file system may answer from its
attribute cache, which is 3 to 60 s old on NFS with its defaults: so long a request may take to be seen there, however often one looks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from onward.errors import TakenOver
from onward.rundir.claim import newest_claim
from onward.rundir.layout import RunDir
from onward.rundir.root.presence import is_deleted
from onward.rundir.run_end import is_to_stop
from onward.supervisor.background import Repeating

LOOK_SECONDS = 3.0
_LIST_ANYWAY = 60.0  # seconds: a folder's time has the server's grain, and may miss a change


class FolderWatch:
    """In a thread, since shared storage may hang."""

    def __init__(self, run: RunDir, leg: int) -> None:
        self._run = run
        self._look = FolderLooks(run, leg)
        self._thread = Repeating("checking the run's folder", self._look.look, every=LOOK_SECONDS)

    @property
    def stop_requested(self) -> bool:
        return self._look.stop_requested

    @property
    def fenced_by(self) -> int:
        return self._look.fenced_by

    @property
    def deleted(self) -> bool:
        return self._look.deleted

    def is_deleted(self) -> bool:
        """Asks at once, too."""
        return self._look.deleted or is_deleted(self._run)

    def taken_over(self) -> bool:
        """Asks at once, instead of telling what was last seen."""
        self._look.look_at_claims()
        return bool(self._look.fenced_by)

    def end(self, *, within: float) -> None:
        self._thread.stop(within=within)


class FolderLooks:
    """One look after another; what was seen last."""

    def __init__(self, run: RunDir, leg: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._leg = leg
        self._claims = ChangedFolder(run.claims, now=now)
        self._count = 0
        self.stop_requested = False
        self.fenced_by = 0
        self.deleted = False  # the whole folder: seen twice, since a network file system may answer wrongly once
        self._missing = False

    def look(self) -> None:
        self.stop_requested = is_to_stop(self._run)
        if self._count % 2 == 0 and self._claims.changed():
            self.look_at_claims()
        if self._claims.missing:
            missing = is_deleted(self._run)
            self.deleted, self._missing = self.deleted or (missing and self._missing), missing
        self._count += 1

    def look_at_claims(self) -> None:
        newest = newest_claim(self._run)
        self.fenced_by = newest if newest > self._leg else 0


def refuse_if_taken_over(run: RunDir, leg: int) -> None:
    """Raises TakenOver once a later leg has been claimed: from then on this one may change nothing that others see."""
    newest = newest_claim(run)
    if newest > leg:
        raise TakenOver(
            f"leg {newest} has begun: leg {leg} publishes nothing more", hint="the next leg on this node publishes what is left"
        )


class StopRequest:
    """Whether somebody wants the run to end. Looked for every few seconds, however often it is asked."""

    def __init__(self, run: RunDir, now: Callable[[], float]) -> None:
        self._run, self._now = run, now
        self._looked, self._there = -math.inf, False

    def to_stop(self) -> bool:
        if self._now() - self._looked >= LOOK_SECONDS:
            self._there, self._looked = is_to_stop(self._run), self._now()
        return self._there


class ChangedFolder:
    """Whether names in a folder have come or gone since the last look, for the price of one stat. Now and then it says so anyway."""

    def __init__(self, path: Path, *, now: Callable[[], float] = time.monotonic, anyway: float = _LIST_ANYWAY) -> None:
        self._path = path
        self._now = now
        self._anyway = anyway
        self._seen = -1
        self._said_at = 0.0
        self.missing = False  # the folder itself, at the last look

    def changed(self) -> bool:
        """The first time it has."""
        try:
            modified, self.missing = self._path.stat().st_mtime_ns, False
        except FileNotFoundError:
            modified, self.missing = 0, True
        now = self._now()
        if modified == self._seen and now - self._said_at < self._anyway:
            return False
        self._seen, self._said_at = modified, now
        return True
