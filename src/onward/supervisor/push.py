"""Push: a job sends its journals and spools to the tracker's server, where that cannot read the run's folder. Never hurts training.

Files are sent as they are, from the byte on that the server says it has. So nothing need be remembered here, whoever dies when: a
later leg, or `onward sync`, goes on with whatever is missing.
"""

from __future__ import annotations

import json
import logging
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from onward.errors import NotAllowed
from onward.rundir.layout import LegLocal, RunDir
from onward.supervisor.upstream import Unreachable, Upstream, upstream_of

log = logging.getLogger(__name__)

PUSH_SECONDS = 2.0
_PIECE = 1 << 19
_LONGEST_LINE = 12 << 20
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_UNKNOWN = 1 << 50  # an offset beyond every file: the answer says where to begin


class Refused(Exception):
    """The server does not take this from us, and will not."""


class Push:
    def __init__(self, upstream: Upstream, run: str, rooms: Mapping[str, Sequence[Path]]) -> None:
        """`rooms`: folders of `journal` and `spool`; of a file that lies in several, the longest counts."""
        self._upstream = upstream
        self._run = run
        self._rooms = rooms
        self._at: dict[str, int] = {}
        self._over: set[str] = set()  # files of which nothing more is taken
        self._wait = _FIRST_WAIT
        self._not_before = 0.0
        self._refused = False

    def work(self) -> None:
        """Send what is new. After a failure, nothing for a while: twice as long each time, up to a minute."""
        if self._refused or time.monotonic() < self._not_before:
            return
        try:
            self.send_all()
            self._wait = _FIRST_WAIT
        except Unreachable as error:
            if self._wait == _FIRST_WAIT:
                log.info("the tracker's server does not answer (%s); records wait in the run's folder", error)
            self._not_before = time.monotonic() + self._wait * random.uniform(0.5, 1.5)
            self._wait = min(self._wait * 2, _LONGEST_WAIT)
        except Refused as error:
            self._refused = True
            log.warning("the tracker's server refuses this run's records: %s; they stay in the run's folder", error)

    def send_all(self, *, until: Callable[[], bool] = lambda: False) -> int:
        """Bytes sent. `until`: asked between pieces whether to leave off. Raises Unreachable and Refused."""
        sent = 0
        for name, path in self._files().items():
            if name not in self._over:
                sent += self._send(name, path, until)
        return sent

    def _files(self) -> dict[str, Path]:
        """Journals first: they say which legs there are."""
        found: dict[str, tuple[int, Path]] = {}
        for room in ("journal", "spool"):
            for folder in self._rooms.get(room, ()):
                for path in sorted(folder.glob("*.jsonl")):
                    try:
                        size = path.stat().st_size
                    except OSError:
                        continue
                    if size > found.get(f"{room}/{path.name}", (-1, path))[0]:
                        found[f"{room}/{path.name}"] = (size, path)
        return {name: path for name, (size, path) in found.items() if size > self._at.get(name, -1)}

    def _send(self, name: str, path: Path, until: Callable[[], bool]) -> int:
        sent = stuck = 0
        if name not in self._at:
            self._at[name] = self._post(name, _UNKNOWN, b"")
        while not until():
            at = self._at[name]
            data = _whole_lines(path, at)
            if not data:
                break
            now = self._post(name, at, data)
            stuck = stuck + 1 if now <= at else 0
            if stuck > 2:
                log.warning("the tracker's server takes no more of %s from byte %d on", name, at)
                self._over.add(name)
                break
            self._at[name] = now
            sent += max(now - at, 0)
        return sent

    def _post(self, name: str, offset: int, data: bytes) -> int:
        target = f"/api/v1/runs/{self._run}/pieces?{urlencode({'file': name, 'offset': offset})}"
        status, body, _ = self._upstream.call("POST", target, data, kind="application/x-ndjson")
        if status in (401, 403, 404):
            raise Refused(_words(status, body))
        if status != 200:
            log.warning("the tracker's server takes nothing of %s: %s", name, _words(status, body))
            self._over.add(name)
            return offset + len(data)
        return int(json.loads(body)["next"])


def push_of(tracker: str | None, run_id: str, run: RunDir, local: LegLocal | None = None) -> Push | None:
    """Of a run whose spec names a server, and which has a token for it."""
    upstream = upstream_of(tracker, run.tracker_token)
    if upstream is None:
        return None
    spools = [run.spool, *([local.spool] if local else [])]
    return Push(upstream, run_id, {"journal": [run.journals], "spool": spools})


def push_last(tracker: str | None, run_id: str, run: RunDir, *, within: float) -> None:
    """The end of a leg: its last records, as far as there is time."""
    push = push_of(tracker, run_id, run)
    until = time.monotonic() + within
    try:
        if push:
            push.send_all(until=lambda: time.monotonic() > until)
    except (Unreachable, Refused, OSError, NotAllowed, ValueError) as error:
        log.info("the last records wait in the run's folder: %s", error)


def _whole_lines(path: Path, at: int) -> bytes:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= at:
            return b""
        file.seek(at)
        data = file.read(_PIECE)
        while b"\n" not in data and len(data) < _LONGEST_LINE and (more := file.read(_PIECE)):
            data += more
    return data[: data.rfind(b"\n") + 1]


def _words(status: int, body: bytes) -> str:
    try:
        told = json.loads(body)
        return f"{status}, {told.get('detail') or told.get('message')}"
    except (ValueError, AttributeError):
        return str(status)
