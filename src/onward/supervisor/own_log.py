"""The log of our own processes in a job. It lies in the run's folder, whose disk may be full: then lines are dropped quietly."""

from __future__ import annotations

import logging
import sys
from typing import TextIO


def log_to_stderr(words: str, *, dates: str | None = None) -> None:
    logging.basicConfig(handlers=[OwnLog(sys.stderr)], level=logging.INFO, format=words, datefmt=dates, force=True)


class OwnLog(logging.StreamHandler[TextIO]):
    """What could not be written is told once, as soon as something can be."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lost, self._why = 0, ""

    def emit(self, record: logging.LogRecord) -> None:
        lost = self._lost
        super().emit(record)
        if lost and lost == self._lost:
            self._lost = 0
            fields = f"{lost} messages may be missing above: the log could not be written ({self._why})"
            super().emit(logging.LogRecord(record.name, logging.WARNING, "", 0, fields, None, None))

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._lost, self._why = self._lost + 1, error.strerror or str(error)
