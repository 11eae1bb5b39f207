"""The spool: one line a record, appended with one write, so that a killed training loses no step it logged."""

from __future__ import annotations

import errno
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class SpoolWriter:
    """Appends records `{"n": sequence, "t": time, ...}` to a file of its own; never raises, never blocks on a network."""

    def __init__(self, folder: str, *, leg: int, rank: int | None = None) -> None:
        self._folder = folder
        self._leg = leg
        self._who = "" if rank is None else f"r{rank}-"  # processes on different nodes may have the same number
        self._pid = 0
        self._handle = -1
        self._sequence = itertools.count()  # threads may log at once: no number is given twice
        self._torn = False  # the file ends within a line
        self._failed = False

    def write(self, record: Mapping[str, object]) -> None:
        try:
            if self._pid != os.getpid():  # first use, or a forked worker: every process has its own file
                self._open()
            line = _encode({"n": next(self._sequence), "t": time.time(), **record}) + "\n"
            data = ("\n" + line if self._torn else line).encode()
            self._torn = os.write(self._handle, data) < len(data)
            if self._torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if not self._failed:
                self._failed = True
                print(f"onward: cannot log to {self._folder}: {error}; training goes on, metrics are lost meanwhile", file=sys.stderr)

    def _open(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"leg-{self._leg:04d}.train-{self._who}{os.getpid()}.jsonl")
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._pid = os.getpid()
        self._sequence = itertools.count()
        self._torn = False
