"""One thread that asks the source, so that the screen never waits. A question that hangs does not keep the program from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class BackgroundThread:
    """Does one thing after the other."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._work, name="onward top", daemon=True).start()

    def do(self, work: Callable[[], None]) -> None:
        self._todo.put(work)

    def _work(self) -> None:
        while True:
            self._todo.get()()
