"""One of several servers tends: PostgreSQL's advisory lock elects it, free again when its holder dies. A file has one server: it tends."""

from __future__ import annotations

import contextlib
import threading

from sqlalchemy import Connection, exc, text

from onward.tracker.db import Database

_LOCK = 0x6F6E_7761_7264  # "onward"


class Election:
    def __init__(self, database: Database) -> None:
        self._database = database
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
                if connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _LOCK}).scalar_one():
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
                    self._held.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
            self._drop()

    def _drop(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            held.invalidate()  # closes the connection itself, and so frees the lock
            held.close()
