"""Where a server keeps its things, and opening them: the database, the files beside it, and a note that says who serves it.

tracker-<machine>.db       the database (or PostgreSQL, by its address)
tracker-<machine>.files/   what was uploaded, a folder a run
tracker-<machine>.server   who serves it: gone when that has stopped
tracker-<machine>.requests.db   what the gateway was asked (in PostgreSQL: tables beside the tracker's)
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from onward.errors import Conflict, StorageError
from onward.schedulers.state_folder import STATE_HINT, state_folder

if TYPE_CHECKING:
    from onward.operations.tracker_access.owner_logins import OwnerLogins
    from onward.tracker.access.token_store import TokenStore
    from onward.tracker.access.tokens import Rights
    from onward.tracker.store import Tracker


@dataclass(frozen=True, kw_only=True)
class TrackerLocation:
    db: str  # a path, or a PostgreSQL address
    files: Path
    note: Path
    state: Path | None = None  # the user's state folder, where the place lies in it

    @property
    def path(self) -> Path | None:
        return None if "://" in self.db else Path(self.db)

    @property
    def requests(self) -> str:
        """The gateway's store. A file of its own: the tracker's has one server, and the gateway may be another process."""
        return str(self.path.with_suffix(".requests.db")) if self.path else self.db

    @property
    def words(self) -> str:
        """For messages: without a password."""
        if self.path:
            return str(self.path)
        try:
            parts = urlsplit(self.db)
            return f"PostgreSQL ({parts.hostname or 'this machine'}{parts.path})"
        except ValueError:
            return "PostgreSQL"

    def close_to_others(self) -> None:
        """What lies here is its owner's alone: the folder of files, and our own state folder. What another owns stays as it is."""
        with contextlib.suppress(OSError):  # told of when the first file comes
            self.files.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.files, self.state):
            if folder is not None:
                with contextlib.suppress(OSError):
                    folder.chmod(0o700)

    def served_at(self) -> str | None:
        """The address of the server that serves this place now."""
        try:
            with self.note.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:  # its server lives
                    url = json.load(file).get("url")
                    return str(url) if url else None
        except (OSError, ValueError, AttributeError):
            return None
        return None


class ServingLock:
    """This process serves the place, until it closes or dies.

    Of a file there is one server, by whatever name it is reached: the file itself is locked, before SQLite opens it and until after it has
    closed it (to close it meanwhile would free SQLite's own locks). Several may serve one PostgreSQL; the note is the first one's.
    """

    def __init__(self, location: TrackerLocation) -> None:
        from onward.tracker.db.database import check_location

        check_location(location.db)
        self._place = location
        self._held = [_locked(location, location.path)] if location.path else []
        self._note: int | None = None
        try:
            self._note = _locked(location, location.note)
        except Conflict:
            if location.path:
                self._release()
                raise

    def at(self, url: str) -> None:
        if self._note is not None:
            with contextlib.suppress(OSError):  # a note for people; a full disk is told of elsewhere
                os.ftruncate(self._note, 0)
                os.pwrite(self._note, json.dumps({"url": url, "pid": os.getpid(), "machine": socket.gethostname()}).encode(), 0)

    def close(self) -> None:
        if self._note is not None:
            with contextlib.suppress(OSError):
                self._place.note.unlink()  # while it is ours
            self._held.append(self._note)
            self._note = None
        self._release()

    def _release(self) -> None:
        while self._held:
            os.close(self._held.pop())


def _locked(location: TrackerLocation, path: Path) -> int:
    """A handle of the file, which nobody else has locked."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written: {error.strerror}", hint=f"choose another place with --db, or {STATE_HINT}"
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
            os.close(handle)  # deleted by the one who closed meanwhile
        except FileNotFoundError:
            os.close(handle)
        except BlockingIOError as error:
            os.close(handle)
            there = location.served_at()
            raise Conflict(
                f"another server serves {location.words}" + (f" at {there}" if there else ""),
                hint="stop that one, or give this one its own database with --db",
            ) from error


def tracker_location(env: Mapping[str, str], db: str | None = None, files: str | None = None) -> TrackerLocation:
    """`--db`, else $ONWARD_DB, else a file in the user's state folder, one a machine, since homes are shared."""
    state = state_folder(env)
    named = db or env.get("ONWARD_DB") or str(state / f"tracker-{socket.gethostname()}.db")
    if "://" in named:
        key = hashlib.sha256(named.encode()).hexdigest()[:8]
        folder = Path(files) if files else state / "files"
        return TrackerLocation(
            db=named, files=folder.absolute(), note=state / f"postgresql-{socket.gethostname()}-{key}.server", state=state
        )
    path = Path(named).expanduser().resolve()  # a link's other things lie where it leads
    return TrackerLocation(
        db=str(path),
        files=Path(files).absolute() if files else path.with_suffix(".files"),
        note=path.with_suffix(".server"),
        state=state if path.parent == state.resolve() else None,
    )


@dataclass(frozen=True, kw_only=True)
class OpenTracker:
    tracker: Tracker
    tokens: TokenStore


@contextlib.contextmanager
def open_tracker(location: TrackerLocation) -> Iterator[OpenTracker]:
    """The store, its tables made or brought up to date, until the block ends. What is in it is its owner's alone."""
    from onward.tracker.access.token_store import TokenStore
    from onward.tracker.store import Tracker

    if location.path:
        location.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    location.close_to_others()
    before = os.umask(0o077)
    try:
        tracker = Tracker.open(location.db)
    finally:
        os.umask(before)
    try:
        yield OpenTracker(tracker=tracker, tokens=TokenStore(tracker))
    finally:
        tracker.close()


def login_link(tokens: TokenStore, url: str, *, name: str, rights: Rights, minutes: float, owners: OwnerLogins | None = None) -> str:
    """An address that logs a browser in, once. `owners`: where it is noted that this user's own browser is meant."""
    from onward.tracker.access.tokens import Scope

    now = time.time()
    token, secret = tokens.create(Scope.LOGIN, name=name, rights=rights, expires=now + 60 * minutes, now=now)
    if owners:
        owners.add(token.id)
    return f"{url}/login?code={secret.text}"
