"""What a killed worker's command left running on this host: ended before another goes on with its task, so that no item is done twice."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PATIENCE = 10.0  # seconds for the killed to be gone
_LOOK_SECONDS = 0.02


def end_marked(variable: str, values: set[str]) -> int:
    """End every process of ours that has one of these values in its environment, and wait until all are gone. Returns how many."""
    marks = {f"{variable}={value}".encode() for value in values}
    ended: set[int] = set()
    until = time.monotonic() + _PATIENCE
    while (found := _marked(marks)) and time.monotonic() < until:  # what they start meanwhile is found by the next look
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= found
        time.sleep(_LOOK_SECONDS)
    return len(ended)


def _marked(marks: set[bytes]) -> set[int]:
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            try:
                variables = Path("/proc", entry, "environ").read_bytes().split(b"\0")  # empty once it is dead
            except OSError:
                continue  # gone, or somebody else's
            if not marks.isdisjoint(variables):
                found.add(int(entry))
    return found
