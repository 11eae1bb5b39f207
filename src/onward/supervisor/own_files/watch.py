"""While it trains: does the training write state of its own, outside ONWARD_CHECKPOINT_DIR? What it did goes into the journal.

Two looks, both cheap. Which files its processes hold open for writing is read from /proc every few seconds: this finds files
wherever they are, and costs the shared storage nothing. The working folder, and what its links lead to, is listed once a minute,
up to a bound. A file counts once it is closed and the training lives on, or has left by itself: one that a kill closed may be half
of a save, or a log. One that was written before the leg began does not count, wherever it was moved to since, and neither does a
link that was made since.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from onward.checkpoints.watching.file_endings import has_proper_end
from onward.checkpoints.watching.open_files import opened_by
from onward.clock import Clock
from onward.model import events as ev
from onward.model.run import Leg
from onward.supervisor.own_files.linked_folders import LinkedFolders
from onward.supervisor.own_files.state_names import is_skipped, looks_like_state
from onward.supervisor.own_files.working_folder import FileStamp, list_state_files, stamps

_OPEN_FILES = 5.0  # seconds between two looks at open files
_EVERY = 60.0  # seconds between two listings of the working folder
_SHARE_OF_A_LEG = 0.1  # or less, in a short leg
_SECONDS_PER_OPERATION = 0.5  # of the shared storage
_CLOCKS_APART = 60.0  # seconds that a file server may be behind the node; what was there when the leg began is known without a clock
_TELL = 60.0  # seconds between two events: so old what a run says is at risk may be
_MOST_NAMES = 5  # in an event
_SYSTEM = ("/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp")


class OwnFilesWatch:
    """`look` is called again and again beside the training, `last_look` once when it has gone."""

    def __init__(
        self,
        folder: Path,
        *,
        leg: int,
        limit: float | None,
        processes: Callable[[], Iterable[int]],
        ours: Collection[Path],
        write: Callable[[ev.Event], None],
        clock: Clock,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """Made before the training starts: what is there now is not its own. `ours`: folders in which nothing is the training's own.

        `limit`: seconds that the leg has.
        """
        self._folder = folder
        self._base = f"{os.path.realpath(folder)}/"
        self._leg = leg
        self._processes = processes
        self._foreign = tuple(f"{os.path.realpath(path)}/" for path in (*map(str, ours), tempfile.gettempdir(), *_SYSTEM))
        self._write = write
        self._clock = clock
        self._since = (clock.now() - _CLOCKS_APART) * 1e9  # nanoseconds
        self._timer = timer
        self._every = min(_EVERY, _SHARE_OF_A_LEG * limit) if limit else _EVERY
        self.pause = min(_OPEN_FILES, self._every)  # seconds between two calls of `look`
        listing = list_state_files(folder)
        self._linked = LinkedFolders(folder, listing.links, foreign=(self._base, *self._foreign))
        linked = self._linked.list()
        self._known = {**listing.files, **linked.files}
        self._next = timer() + self._rest(listing.operations + linked.operations)
        self._open: frozenset[str] = frozenset()  # real paths, at the last look
        self._closed: frozenset[str] = frozenset()  # between the last two: by the training, if it lives at the next; else by a kill
        self._untold: dict[str, FileStamp] = {}
        self._tell_at = 0.0

    def look(self) -> None:
        processes = list(self._processes())
        if processes:  # else it has gone, and closed nothing by itself
            now_open = frozenset(path for path in opened_by(processes) if self._may_be_state(path))
            self._note_all(self._closed)
            self._closed, self._open = self._open - now_open, now_open
        if self._timer() >= self._next:
            self._list()
        if self._untold and self._timer() >= self._tell_at:
            self._tell()

    def last_look(self, *, cut: bool) -> None:
        """`cut`: it may have been in the middle of a save. What it was not seen to outlive after closing it may then be torn: it counts
        only if its format says that it is whole."""
        self._note_all(path for path in self._open | self._closed if not cut or has_proper_end(Path(path)))
        self._list()
        if self._untold:
            self._tell()

    def tell_of_killed_leg(self, leg: Leg) -> None:
        """To be called before the training starts, of the leg before: if it was killed with its supervisor, nobody told its last saves.

        What is there of them, and whole by its format, is what the training goes on from.
        """
        if leg.own or not leg.started:
            return
        since = max((saved.written for saved in leg.self_saved), default=leg.started)
        until = leg.ended or self._clock.now()
        late = {name: stamp for name, stamp in self._known.items() if stamp[0] and since < stamp[1] / 1e9 <= until}
        whole = {name: stamp for name, stamp in late.items() if has_proper_end(self._folder / name)}
        if whole:
            self._write(self._event(leg.number, whole))

    def _list(self) -> None:
        listing, linked = list_state_files(self._folder), self._linked.list()
        for name, stamp in (*listing.files.items(), *linked.files.items()):
            path = name if name.startswith("/") else os.path.realpath(self._folder / name)
            if path not in self._open | self._closed:
                self._note(name, stamp)
        self._next = self._timer() + self._rest(listing.operations + linked.operations)

    def _note_all(self, paths: Iterable[str]) -> None:
        for name, stamp in stamps(map(self._name, paths), self._folder).items():
            self._note(name, stamp)

    def _note(self, name: str, stamp: FileStamp) -> None:
        if self._known.get(name) != stamp and stamp[0] and stamp[1] >= self._since:
            self._untold[name] = stamp
        self._known[name] = stamp

    def _tell(self) -> None:
        self._write(self._event(self._leg, self._untold))
        self._untold.clear()
        self._tell_at = self._timer() + min(_TELL, 10 * self._every)

    def _event(self, leg: int, files: Mapping[str, FileStamp]) -> ev.SelfSaved:
        newest = sorted(files, key=lambda name: files[name][1], reverse=True)
        now = self._clock.now()
        size = sum(stamp[0] for stamp in files.values())
        return ev.SelfSaved(leg=leg, at=now, files=newest[:_MOST_NAMES], bytes=size, written=min(now, files[newest[0]][1] / 1e9))

    def _rest(self, operations: int) -> float:
        return max(self._every, operations * _SECONDS_PER_OPERATION)

    def _may_be_state(self, path: str) -> bool:
        """Beneath the working folder wherever that is, or elsewhere but not where programs keep what is nobody's state."""
        name = self._name(path)
        if name.startswith("/") and path.startswith(self._foreign):
            return False
        return looks_like_state(name) and not any(is_skipped(part) for part in name.split("/")[:-1])

    def _name(self, path: str) -> str:
        return path.removeprefix(self._base)
