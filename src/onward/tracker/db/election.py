"""One of several servers tends: PostgreSQL's advisory lock elects it, free again when its holder dies. A file has one server: it tends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading

from sqlalchemy import Connection, exc, text

from onward.tracker.db.database import Database

_LOCK = 0x6F6E_7761_7264  # "onward"; the next number is that of upgrades (migrate.py)
_REQUESTS_LOCK = _LOCK + 2


class Election:
    def __init__(self, database: Database, *, lock: int = _LOCK) -> None:
        self._database = database
        self._lock = lock
        self._held: Connection | None = None
        self._guard = threading.Lock()

    def won(self) -> bool:
        """Whether this server is the one. Ask before every round: a connection that was lost takes the office with it."""
        if self._database.is_file:
            return True
        with self._guard:
            try:
                if self._held is not None:
                    self._held.execute(text("SELECT 1"))
                    return True
                connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                if connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": self._lock}).scalar_one():
                    self._held = connection
                    return True
                connection.close()
            except exc.DBAPIError:
                self._drop()
            return False

    def leave(self) -> None:
        with self._guard:
            if self._held is not None:
                with contextlib.suppress(exc.DBAPIError):  # by word: the server sees only later that a connection was closed
                    self._held.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": self._lock})
            self._drop()

    def _drop(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            held.invalidate()  # closes the connection itself, and so frees the lock
            held.close()


class RequestServerElection(Election):
    """The same for one of several processes that serve the gateway's requests, which may have a file open together: a lock beside it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, lock=_REQUESTS_LOCK)
        self._handle: int | None = None

    def won(self) -> bool:
        path = self._database.path
        if path is None:
            return super().won()
        with self._guard:
            if self._handle is None:
                handle = os.open(path.with_suffix(".serving"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._handle = handle
                except BlockingIOError:
                    os.close(handle)
            return self._handle is not None

    def leave(self) -> None:
        super().leave()
        with self._guard:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
