"""A process that writes to a tracker and says what was acknowledged: to be killed. `python -m tests.tracker_load PLACE RUN FIRST [ROOT]`"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from pathlib import Path

from onward.tracker.store import Tracker

NOW = 1_700_000_000.0
SIZE = 10  # points a batch
KEYS = 3


def batch(number: int) -> list[tuple[str, int, float, float]]:
    """Batch so and so: the same every time it is sent."""
    return [(f"m{number % KEYS}", number * SIZE + i, NOW + number, float(number)) for i in range(SIZE)]


def main() -> None:
    address, run, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
    root = Path(sys.argv[4]) if len(sys.argv) > 4 else None
    numbers = itertools.count(first)
    tracker = Tracker.open(address)

    def send() -> None:
        for number in numbers:
            tracker.ingest.points(run, batch(number))
            os.write(1, b"%d\n" % number)  # whole, whoever writes at once

    def tidy() -> None:
        while True:
            tracker.upkeep.tidy(resting=0)
            if root:
                tracker.files.look([root])

    for work in (send, send, send, tidy):
        threading.Thread(target=work, daemon=True).start()
    threading.Event().wait(120)


if __name__ == "__main__":
    main()
