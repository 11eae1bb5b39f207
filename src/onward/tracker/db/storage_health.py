"""Why nothing can be stored at the moment, if so: told in the log once a minute, and to whoever asks whether the server is ready."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from onward.errors import StorageError

log = logging.getLogger(__name__)

EVERY = 60.0  # seconds between two lines about the same trouble


class StorageHealth:
    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._guard = threading.Lock()
        self._error: StorageError | None = None
        self._since = 0.0
        self._refused = 0
        self._told: dict[type[StorageError], float] = {}  # when, by kind
        self._silent = True  # nothing was told of this trouble

    @property
    def error(self) -> StorageError | None:
        return self._error

    def met(self, error: StorageError, *, refused: int = 1) -> None:
        """Something could not be stored. `refused`: how many were not acknowledged."""
        now, kind = self._monotonic(), type(error)
        with self._guard:
            if self._error is None:
                self._since, self._refused, self._silent = now, 0, True
            self._error = error
            self._refused += refused
            if now - self._told.get(kind, now - EVERY) < EVERY:
                return
            self._told[kind], self._silent = now, False
            said = {"hint": error.hint or None, "refused": self._refused, "seconds": round(now - self._since)}
        log.error("nothing can be stored: %s", error.message, extra={"action": "store", "said": said})

    def over(self) -> None:
        """Something was stored."""
        if self._error is None:  # the usual: no lock on the way of every commit
            return
        with self._guard:
            if self._error is None:
                return
            self._error = None
            if self._silent:
                return
            said = {"refused": self._refused, "seconds": round(self._monotonic() - self._since)}
        log.warning("data is stored again", extra={"action": "store", "said": said})
