"""Signals of the scheduler: remembered by the handler, dealt with by the supervisor's loop at its next tick."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Protocol

_HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
_WARNINGS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)


class SignalMeaning(Protocol):
    """What a notice that the job will be killed turns out to mean."""

    @property
    def deleted(self) -> bool: ...

    @property
    def given_up(self) -> bool: ...

    def came(self) -> None: ...

    def settle(self) -> None: ...


class Signals:
    def __init__(self) -> None:
        self._came: set[int] = set()
        self._delete_notice: int | None = None
        self._meaning: SignalMeaning | None = None
        for number in _HEEDED:
            signal.signal(number, self._take)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    @property
    def came(self) -> bool:
        """Any of them. The training may have had it too."""
        return bool(self._came)

    @property
    def warned(self) -> bool:
        """The job will end soon."""
        return any(number in self._came for number in _WARNINGS if number != self._delete_notice)

    @property
    def deleted(self) -> bool:
        """Somebody deleted the job, or its limit has come: it will be killed within seconds."""
        return self._noticed and self._meaning is not None and self._meaning.deleted

    @property
    def given_up(self) -> bool:
        """The scheduler has lost this host from sight and starts the job elsewhere: it will be killed here within seconds."""
        return self._noticed and self._meaning is not None and self._meaning.given_up

    def settle(self) -> None:
        """Wait, seconds at most, until it is known what a notice meant."""
        if self._noticed and self._meaning:
            self._meaning.settle()

    @property
    def _noticed(self) -> bool:
        return self._delete_notice in self._came

    @property
    def ending(self) -> bool:
        """The job is being ended now."""
        return any(number in self._came for number in _HEEDED if number not in _WARNINGS)

    def expect_delete_notice(self, number: int | None, meaning: SignalMeaning) -> None:
        """This signal announces that the job will be killed. `meaning` hears of it at once, wherever we are: there may not be long."""
        self._delete_notice, self._meaning = number, meaning
        if self._noticed:
            meaning.came()

    def _take(self, number: int, _frame: object) -> None:
        first = number not in self._came
        self._came.add(number)
        if first and number == self._delete_notice and self._meaning:
            self._meaning.came()


def ignoring_notices(argv: Sequence[str]) -> Sequence[str]:
    """The same command, deaf to the notices that some schedulers send to every process of a job, and that kill whoever does not
    heed them. A training that does sets its own handler, as before."""
    return ("/bin/sh", "-c", 'trap "" USR1 USR2; exec "$@"', "sh", *argv)


def ignore_notices() -> None:
    """The same for a process of our own."""
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
