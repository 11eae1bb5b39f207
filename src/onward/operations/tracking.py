"""Where a server keeps its things, and opening them: the database, the files beside it, and a note that says who serves it.

tracker-<machine>.db       the database (or PostgreSQL, by its address)
tracker-<machine>.files/   what was uploaded, a folder a run
tracker-<machine>.server   who serves it: locked as long as it lives, so that there is one
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

if TYPE_CHECKING:
    from onward.tracker.store import Tracker
    from onward.tracker.token_store import TokenStore
    from onward.tracker.tokens import Rights


@dataclass(frozen=True, kw_only=True)
class Place:
    db: str  # a path, or a PostgreSQL address
    files: Path
    note: Path
    state: Path | None = None  # the user's state folder, where the place lies in it

    @property
    def path(self) -> Path | None:
        return None if "://" in self.db else Path(self.db)

    @property
    def words(self) -> str:
        """For messages: without a password."""
        if self.path:
            return str(self.path)
        parts = urlsplit(self.db)
        return f"PostgreSQL ({parts.hostname or 'this machine'}{parts.path})"

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


class Serving:
    """This process serves the place, until it closes or dies."""

    def __init__(self, place: Place) -> None:
        self._place = place
        try:
            place.note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.open(place.note, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"{place.note} cannot be written: {error.strerror}", hint="choose another place by --db") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if place.path is None:  # several may serve one PostgreSQL; the note is the first one's
                self._file = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                return
            os.close(self._file)
            there = place.served_at()
            raise Conflict(
                f"another server serves {place.words}" + (f" at {there}" if there else ""),
                hint="stop that one, or give this one a database of its own by --db",
            ) from error

    def at(self, url: str) -> None:
        self._write(json.dumps({"url": url, "pid": os.getpid(), "machine": socket.gethostname()}).encode())

    def close(self) -> None:
        self._write(b"")
        os.close(self._file)

    def _write(self, text: bytes) -> None:
        with contextlib.suppress(OSError):  # a note for people; a full disk is told of elsewhere
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text, 0)


def place_of(env: Mapping[str, str], db: str | None = None, files: str | None = None) -> Place:
    """`--db`, else $ONWARD_DB, else a file in the user's state folder, one a machine, since homes are shared."""
    state = _state(env)
    named = db or env.get("ONWARD_DB") or str(state / f"tracker-{socket.gethostname()}.db")
    if "://" in named:
        key = hashlib.sha256(named.encode()).hexdigest()[:8]
        folder = Path(files) if files else state / "files"
        return Place(db=named, files=folder.absolute(), note=state / f"postgresql-{socket.gethostname()}-{key}.server", state=state)
    path = Path(named).expanduser().absolute()
    return Place(
        db=str(path),
        files=Path(files).absolute() if files else path.with_suffix(".files"),
        note=path.with_suffix(".server"),
        state=state if path.parent == state else None,
    )


def _state(env: Mapping[str, str]) -> Path:
    if env.get("ONWARD_STATE_DIR"):
        return Path(env["ONWARD_STATE_DIR"]).absolute()
    home = env.get("XDG_STATE_HOME", "")
    return (Path(home) if home.startswith("/") else Path.home() / ".local" / "state") / "onward"


@dataclass(frozen=True, kw_only=True)
class Opened:
    tracker: Tracker
    tokens: TokenStore


@contextlib.contextmanager
def open_tracker(place: Place) -> Iterator[Opened]:
    """The store, its tables made or brought up to date, until the block ends. What is in it is its owner's alone."""
    from onward.tracker.store import Tracker
    from onward.tracker.token_store import TokenStore

    if place.path:
        place.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.close_to_others()
    before = os.umask(0o077)
    try:
        tracker = Tracker.open(place.db)
    finally:
        os.umask(before)
    try:
        yield Opened(tracker=tracker, tokens=TokenStore(tracker))
    finally:
        tracker.close()


def login_link(tokens: TokenStore, url: str, *, name: str, rights: Rights, minutes: float) -> str:
    """An address that logs a browser in, once."""
    from onward.tracker.tokens import Scope

    now = time.time()
    _, secret = tokens.create(Scope.LOGIN, name=name, rights=rights, expires=now + 60 * minutes, now=now)
    return f"{url}/login?code={secret.text}"
