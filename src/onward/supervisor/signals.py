"""Signals of the scheduler: remembered by the handler, dealt with by the supervisor's loop at its next tick."""

from __future__ import annotations

import signal

_HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
_WARNINGS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)


class Signals:
    def __init__(self) -> None:
        self.warned = False  # the job will end soon
        self.ending = False  # the job is being ended now
        for number in _HEEDED:
            signal.signal(number, self._take)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _take(self, number: int, _frame: object) -> None:
        if number in _WARNINGS:
            self.warned = True
        else:
            self.ending = True
