"""How fast the store is now: a small file written and flushed there, beside the training. It leaves nothing behind."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from onward.clock import Clock
from onward.sdk.atomic_files import write_all

log = logging.getLogger(__name__)

_BLOCK = 4 << 20


@dataclass(frozen=True, kw_only=True)
class StoreSpeed:
    at: float
    seconds: float
    bytes: int


class StoreProbe:
    """Measures in a thread of its own, one at a time: a store that hangs holds up nobody."""

    def __init__(self, store: Path, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._found: queue.SimpleQueue[StoreSpeed] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def want(self, size: int) -> None:
        if size and not (self._thread and self._thread.is_alive()):
            self._thread = threading.Thread(target=self._measure, args=(size,), name="store probe", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # no address space left for a thread
                log.debug("the storage is not measured: %s", error)

    def take(self) -> list[StoreSpeed]:
        found = []
        while not self._found.empty():
            found.append(self._found.get())
        return found

    def _measure(self, size: int) -> None:
        try:
            seconds = write_and_flush(self._store, size)
        except OSError as error:  # full, or not there: a publish will say so
            log.debug("the storage is not measured: %s", error)
            return
        self._found.put(StoreSpeed(at=self._clock.now(), seconds=seconds, bytes=size))


def write_and_flush(folder: Path, size: int) -> float:
    """Seconds to write so many bytes there. The file has no name by the time the first byte is written."""
    path = folder / f".probe-{os.getpid()}-{threading.get_ident()}"
    block = os.urandom(_BLOCK)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.unlink(path)
        began = time.monotonic()
        for start in range(0, size, _BLOCK):
            write_all(handle, block[: min(_BLOCK, size - start)])
        os.fsync(handle)
        return time.monotonic() - began
    finally:
        os.close(handle)
