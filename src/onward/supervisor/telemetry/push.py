"""Push: a job sends what its run's folder holds to the tracker's server, where that cannot read it. Never hurts training.

Files are sent as they are, from the byte on that the server says it has. So nothing need be remembered here, whoever dies when: a
later leg, or `onward sync`, goes on with whatever is missing. Spools go first, then journals, so that a run is not known to be over before
its last points are; logs, TensorBoard's files and small artifacts when those have arrived.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

from onward.errors import NotAllowed
from onward.rundir.files.growing import lines_from
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.packed_lines import KIND as PACKED
from onward.rundir.packed_lines import PackedLines, pack_lines
from onward.supervisor.telemetry.changed_files import ChangedPushFiles
from onward.supervisor.telemetry.push_files import JOURNAL, SPOOL, FileToPush, PushAreas, files, push_areas, records
from onward.supervisor.telemetry.tracker_server import TrackerConnection, TrackerUnreachable, tracker_connection_of

log = logging.getLogger(__name__)

PUSH_SECONDS = 2.0
_PIECE = 1 << 19
_TURN = 1 << 20  # bytes of one file before the next has its turn
_FILES_EVERY, _FILES_TURN = 6.0, 1.0  # seconds between two looks for files, and for sending them
_LONGEST_LINE = 12 << 20
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_TOKEN_COMES_WITHIN = 60.0  # seconds after a run was made, from whoever submitted it
_WORTH_PACKING = 4096  # bytes
_MOST_SKELETONS = 500
_UNKNOWN = 1 << 50  # an offset beyond every file: the answer says where to begin


class PushRefused(Exception):
    """The server does not take this from us, and will not."""


class Push:
    def __init__(
        self,
        find: TrackerConnection | Callable[[], TrackerConnection | None],
        run: str,
        rooms: PushAreas,
        *,
        looks: ChangedPushFiles | None = None,
    ) -> None:
        """`find`: the server, or what tells it once it is known. `rooms`: folders by kind, see `push_files`. `looks`: of a living leg."""
        self._find = find
        self._upstream = find if isinstance(find, TrackerConnection) else None
        self._run = run
        self._rooms = rooms
        self._looks = looks
        self._at: dict[str, int] = {}
        self._content: dict[str, int | None] = {}  # when a file that is replaced was, as it was last sent
        self._over: set[str] = set()  # files of which nothing more is taken
        self._wait = _FIRST_WAIT
        self._not_before = 0.0
        self._files_not_before = 0.0
        self._refused = False
        self._packs = False  # the server said that it takes packed lines
        self._only_plain = False  # and did not, when it was sent some
        self._skeletons: set[str] = set()  # digests of those that it was sent

    def work(self) -> None:
        """Send what is new. After a failure, nothing for a while: twice as long each time, up to a minute."""
        if self._refused or time.monotonic() < self._not_before or not self._known():
            return
        try:
            self.send_records(self._looks.records() if self._looks else None)
            if time.monotonic() >= self._files_not_before:
                began = time.monotonic()
                found = self._looks.files() if self._looks else None
                self.send_files(found, until=lambda: time.monotonic() > began + _FILES_TURN)  # records do not wait for long
                self._files_not_before = time.monotonic() + _FILES_EVERY
            self._wait = _FIRST_WAIT
            if self._looks:
                self._looks.settle(self._is_sent)
        except TrackerUnreachable as error:
            if self._wait == _FIRST_WAIT:
                log.info("the tracker's server does not answer (%s); records wait in the run's folder", error)
            self._not_before = time.monotonic() + self._wait * random.uniform(0.5, 1.5)
            self._wait = min(self._wait * 2, _LONGEST_WAIT)
        except PushRefused as error:
            self._refused = True
            log.warning("the tracker's server refuses this run's records: %s; they stay in the run's folder", error)

    def send_all(self, *, until: Callable[[], bool] = lambda: False) -> int:
        """Bytes sent. `until`: asked between pieces whether to leave off. Raises Unreachable and Refused."""
        return (self.send_records(until=until) + self.send_files(until=until)) if self._known() else 0

    def send_records(self, found: Sequence[FileToPush] | None = None, *, until: Callable[[], bool] = lambda: False) -> int:
        """Journals when all else was sent that there was when they were found, but also where no time is left: they are short."""
        listed = records(self._rooms) if found is None else found
        journals = [one for one in listed if one.name.startswith(JOURNAL)]
        sent = sum(self._send(one, until) for one in listed if one not in journals)
        return sent + sum(self._send(one, lambda: False) for one in journals)

    def send_files(self, found: Sequence[FileToPush] | None = None, *, until: Callable[[], bool] = lambda: False) -> int:
        """Logs first, then TensorBoard's files, then artifacts; none of them for so long that the others wait for ever."""
        sent, left = 0, list(files(self._rooms) if found is None else found)
        while left and not until():
            new = [self._send(one, until, most=_TURN) for one in left]
            sent += sum(new)
            left = [one for one, bytes in zip(left, new, strict=True) if bytes >= _TURN]
        return sent

    def _is_sent(self, found: FileToPush) -> bool:
        return found.name in self._over or (self._at.get(found.name, -1) >= found.size and self._content.get(found.name) == found.modified)

    def _known(self) -> bool:
        if self._upstream is None and not isinstance(self._find, TrackerConnection):
            self._upstream = self._find()
        return self._upstream is not None

    def _send(self, found: FileToPush, until: Callable[[], bool], most: int | None = None) -> int:
        name = found.name
        if self._content.get(name) != found.modified:  # another content than the one that was sent
            self._at.pop(name, None)
            self._over.discard(name)
        self._content[name] = found.modified
        if name in self._over or found.size <= self._at.get(name, -1):
            return 0
        sent = stuck = 0
        if name not in self._at:
            self._at[name] = self._post(found, _UNKNOWN, b"")
        while name not in self._over and not until() and (most is None or sent < most):
            at = self._at[name]
            end = found.size if name.startswith(JOURNAL) else None
            data = _whole_lines(found.path, at, end) if found.lines else _bytes(found, at)
            if not data and not found.is_empty:
                break
            now = self._post(found, at, data)
            stuck = stuck + 1 if now <= at else 0
            if stuck > 2:
                log.warning("the tracker's server accepts no more of %s from byte %d on", name, at)
                self._over.add(name)
            if not data:
                break
            self._at[name] = now
            sent += max(now - at, 0)
        return sent

    def _post(self, found: FileToPush, offset: int, data: bytes) -> int:
        packed = pack_lines(data, self._skeletons) if self._packs and found.name.startswith(SPOOL) and len(data) >= _WORTH_PACKING else None
        taken = self._post_packed(found, offset, packed) if packed else None
        return self._post_plain(found, offset, data) if taken is None else taken

    def _post_packed(self, found: FileToPush, offset: int, packed: PackedLines) -> int | None:
        """None: it did not take them so. Then they are sent as they are."""
        assert self._upstream
        target = f"/api/v1/runs/{self._run}/packed-pieces?{urlencode({'file': found.name, 'offset': offset})}"
        status, body, _ = self._upstream.call("POST", target, packed.body, kind=PACKED)
        answer = json.loads(body) if status == 200 else {"missing": True}
        if answer.get("missing"):
            self._only_plain = status != 200 or packed.complete  # a server of before, or one that remembers nothing
            self._skeletons.clear()
            return None
        self._skeletons = (self._skeletons if len(self._skeletons) < _MOST_SKELETONS else set()) | packed.digests
        return int(answer["next"])

    def _post_plain(self, found: FileToPush, offset: int, data: bytes) -> int:
        assert self._upstream
        asked: dict[str, str | int] = {"file": found.name, "offset": offset}
        if found.modified is not None:
            asked |= {"size": found.size, "modified": found.modified}
        kind = "application/x-ndjson" if found.lines else "application/octet-stream"
        status, body, _ = self._upstream.call("POST", f"/api/v1/runs/{self._run}/pieces?{urlencode(asked)}", data, kind=kind)
        if status in (401, 403, 404):
            raise PushRefused(_words(status, body))
        if status != 200:
            log.warning("the tracker's server accepts nothing of %s: %s", found.name, _words(status, body))
            self._over.add(found.name)
            return offset + len(data)
        answer = json.loads(body)
        self._packs = bool(answer.get("packed")) and not self._only_plain
        return int(answer["next"])


def push_of(tracker: str | None, run_id: str, run: RunDir, local: LegLocal | None = None) -> Push | None:
    """Of a run whose spec names a server. Its token may come later: whoever submitted from afar brings it when there is a run."""
    looks = ChangedPushFiles(run, local) if local else None
    return Push(_Finding(tracker, run), run_id, push_areas(run, local), looks=looks) if tracker else None


class _Finding:
    """The server, once there is a token for it; a token that cannot be used is said once."""

    def __init__(self, tracker: str, run: RunDir) -> None:
        self._tracker = tracker
        self._run = run
        self._given_up = False

    def __call__(self) -> TrackerConnection | None:
        if self._given_up or not self._run.tracker_token.exists():
            return None
        found = tracker_connection_of(self._tracker, self._run.tracker_token)
        self._given_up = found is None
        return found


def push_last(tracker: str | None, run_id: str, run: RunDir, *, within: float, age: float = math.inf) -> None:
    """The end of a leg: its last records, as far as there is time. `age` of the run: of a young one the token may be on its way."""
    push = push_of(tracker, run_id, run)
    until = time.monotonic() + within
    try:
        while push and age < _TOKEN_COMES_WITHIN and not run.tracker_token.exists() and time.monotonic() < until:
            time.sleep(0.2)
        if push:
            push.send_all(until=lambda: time.monotonic() > until)
    except (TrackerUnreachable, PushRefused, OSError, NotAllowed, ValueError) as error:
        log.info("the last records stay in the run's folder: %s", error)


def _whole_lines(path: Path, at: int, end: int | None) -> bytes:
    """Lines up to `end`, else to the end of the file."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= at:
            return b""
        data = lines_from(file, at, piece=_PIECE, longest=_LONGEST_LINE)[0]
    return data if end is None or at + len(data) <= end else data[: data.rfind(b"\n", 0, max(end - at, 0)) + 1]


def _bytes(found: FileToPush, at: int) -> bytes:
    """Of one that is replaced, as much as it had when it was found: a piece of another content would be worse than none."""
    try:
        with found.path.open("rb") as file:
            seen = os.fstat(file.fileno())
            if found.modified is not None and (seen.st_mtime_ns, seen.st_size) != (found.modified, found.size):
                return b""
            if seen.st_size <= at:
                return b""
            file.seek(at)
            return file.read(_PIECE)
    except FileNotFoundError:
        return b""


def _words(status: int, body: bytes) -> str:
    try:
        answer = json.loads(body)
        return f"{status}, {answer.get('detail') or answer.get('message')}"
    except (ValueError, AttributeError):
        return str(status)
