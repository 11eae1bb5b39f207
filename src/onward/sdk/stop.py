"""When a process is to stop. Alone, it looks for the stop file; of several, all leave at the same call of should_stop().

The stop file appears empty: a stop is wanted. Each rank answers with a promise: it has made so many calls, and will not
go beyond a certain one before it has heard more. From all promises the supervisor takes a call that nobody has passed,
and writes its number into the file; every rank leaves at that call. A rank that reaches its limit first waits there for
the number. Where others have not promised yet, as they may be waiting for this one in a collective operation, it is
allowed to go on to a further call ("to 17"). So no order in which files are seen, however late, lets one rank leave
where the others go on, nor keeps them all waiting.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from onward.sdk import contract
from onward.sdk.atomic_files import draft_of
from onward.sdk.ranks import Ranks

GO, LEAVE, WAIT = "go", "leave", "wait"

_AHEAD_SECONDS = 1.0  # a promise reaches about so far: time enough to agree without anyone waiting
_PATIENCE = 60.0  # a supervisor that does not answer for this long is gone


class StopFile:
    """For a process that decides for itself."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._asked = False

    def term(self) -> None:
        self._asked = True

    def call(self) -> bool:
        if not self._asked and self._path and os.path.exists(self._path):
            self._asked = True
        return self._asked


class StopPromise:
    """One rank's side of the agreement, without files: what it may do at this call."""

    def __init__(self) -> None:
        self.count = 0  # calls made
        self.limit: int | None = None  # the call that it will not pass before it knows the number

    def answer(self, *, asked: bool, number: int | None, allowed: int = 0, ahead: int) -> str:
        if number is not None:
            return LEAVE if self.count >= number else GO
        if not asked:
            return GO
        if self.limit is None:
            self.limit = self.count + max(ahead, 1)
        self.limit = max(self.limit, allowed)
        return GO if self.count < self.limit else WAIT


class AgreedStop:
    """For one of several: the files around a Promise."""

    def __init__(self, path: str, folder: str, ranks: Ranks) -> None:
        self._path = path
        self._note = os.path.join(folder, contract.rank_name(ranks.rank) + ".json")
        self._ranks = ranks
        self._promise = StopPromise()
        self._number: int | None = None
        self._allowed = 0
        self._asked = False
        self._termed = False
        self._waiting = False
        self._told: tuple[int | None, bool, bool] | None = None  # what may change, as last written
        self._began = 0.0

    def term(self) -> None:
        """This process, and perhaps the others, was asked to end: the supervisor learns of it at the next call."""
        self._termed = True

    def call(self) -> bool:
        promise = self._promise
        promise.count += 1
        if promise.count == 1:
            self._began = time.monotonic()
            self._tell()
        self._look()
        if not self._asked and not self._termed:
            return False
        answer = self._answer()
        if answer == WAIT:
            answer = self._wait()
        return answer == LEAVE

    def _answer(self) -> str:
        answer = self._promise.answer(asked=self._asked, number=self._number, allowed=self._allowed, ahead=self._ahead())
        self._waiting = answer == WAIT
        self._tell()
        return answer

    def _wait(self) -> str:
        promise = self._promise
        until = time.monotonic() + max(_PATIENCE, 6 * self._interval())
        while time.monotonic() < until:
            time.sleep(0.005)
            self._look()
            answer = self._answer()
            if answer != WAIT:
                return answer
        promise.limit = None  # promise again: nothing has relied on it yet
        return self._answer()

    def _look(self) -> None:
        if self._number is not None or not os.path.exists(self._path):
            return
        self._asked = True
        try:
            with open(self._path) as file:
                text = file.read().strip()
        except OSError:
            return
        if text.isdecimal():
            self._number = int(text)
        elif text[3:].isdecimal():
            self._allowed = int(text[3:])

    def _interval(self) -> float:
        """Seconds between calls, so far."""
        return (time.monotonic() - self._began) / max(self._promise.count - 1, 1)

    def _ahead(self) -> int:
        """Never more calls than were made: the first few may come in a burst, and tell nothing of a step's length."""
        return min(max(round(_AHEAD_SECONDS / max(self._interval(), 1e-9)), 1), self._promise.count)

    def _tell(self) -> None:
        """A small file on the node's own disk, written when there is something new: at the first call, and when a stop comes."""
        news = (self._promise.limit, self._termed, self._waiting)
        if self._told == news:
            return
        self._told = news
        note = {
            "rank": self._ranks.rank,
            "world": self._ranks.world_size,
            "count": self._promise.count,
            "limit": self._promise.limit,
            "interval": round(self._interval(), 6),
            "term": self._termed,
            "waiting": self._waiting,
        }
        try:
            with draft_of(Path(self._note), mode=0o666, flush=False) as file:
                file.write(json.dumps(note).encode())
        except OSError:
            self._told = None  # tried again at the next call


def stop_source(env: dict[str, str] | os._Environ[str], ranks: Ranks, *, agree: bool) -> StopFile | AgreedStop:
    path, folder = env.get(contract.STOP_FILE, ""), env.get(contract.RANKS_DIR, "")
    if ranks.several and agree and path and folder:
        return AgreedStop(path, folder, ranks)
    return StopFile(path)
