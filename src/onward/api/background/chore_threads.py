"""What the server does beside answering, each chore in a thread of its own, again and again.

A chore that fails says so and is tried later, less often.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from onward.api.server_log import log, note
from onward.errors import OnwardError

_SLOWEST = 300.0
_QUICK = 5  # doublings, where it may be better soon: a disk that has room again, a database that is back


@dataclass(frozen=True, kw_only=True)
class Chore:
    name: str
    every: float  # seconds between the end of one pass and the next
    gap: float = 0.0  # the least of them, however often it is hurried
    do: Callable[[], object]


class Background:
    def __init__(self, chores: list[Chore]) -> None:
        self._stop = threading.Event()
        self._wake = {chore.name: threading.Event() for chore in chores}
        self._threads = [threading.Thread(target=self._go, args=(chore,), name=chore.name, daemon=True) for chore in chores]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def hurry(self, name: str) -> None:
        """Have a chore done soon rather than when its time comes."""
        if name in self._wake:
            self._wake[name].set()

    def stop(self, patience: float = 5.0) -> None:
        self._stop.set()
        for wake in self._wake.values():
            wake.set()
        for thread in self._threads:
            thread.join(patience)

    def _go(self, chore: Chore) -> None:
        failures = 0
        wake = self._wake[chore.name]
        while not self._stop.is_set():
            wake.clear()
            try:
                chore.do()
                failures = 0
            except OnwardError as error:
                failures = min(failures + 1, _QUICK) if error.transient else failures + 1
                note(logging.WARNING, chore.name, error.message, hint=error.hint or None, failures=failures)
            except Exception:
                failures += 1
                log.exception("%s failed; it is retried", chore.name, extra={"action": chore.name})
            if self._stop.is_set():
                return
            if self._stop.wait(chore.gap):
                return
            wake.wait(max(min(chore.every * 2 ** min(failures, 8), max(_SLOWEST, chore.every)) - chore.gap, 0.0))
