"""Signals of the scheduler, and what they are taken for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from onward.supervisor.stop.signals import Signals, ignoring_notices

_TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGHUP)


@pytest.fixture
def signals() -> Iterator[Signals]:
    before = {number: signal.getsignal(number) for number in _TAKEN}
    yield Signals()
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU])
def test_a_warning_says_that_the_job_will_end(signals: Signals, number: int) -> None:
    send(number)
    assert (signals.warned, signals.deleted, signals.ending) == (True, False, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_end_is_one(signals: Signals, number: int) -> None:
    send(number)
    assert (signals.warned, signals.deleted, signals.ending) == (False, False, True)


class Meant:
    """A notice whose meaning is known at once."""

    def __init__(self, *, given_up: bool = False) -> None:
        self.given_up, self.deleted = given_up, not given_up
        self.times = 0

    def came(self) -> None:
        self.times += 1

    def settle(self) -> None: ...


def test_where_a_signal_announces_a_deletion_that_is_noted_at_once_and_once(signals: Signals) -> None:
    meant = Meant()
    signals.expect_delete_notice(signal.SIGUSR2, meant)
    send(signal.SIGUSR1)
    assert (signals.warned, signals.deleted, meant.times) == (True, False, 0)
    send(signal.SIGUSR2)
    send(signal.SIGUSR2)
    assert (signals.deleted, meant.times) == (True, 1)


def test_a_notice_that_came_before_anybody_expected_it_counts(signals: Signals) -> None:
    meant = Meant()
    send(signal.SIGUSR2)
    signals.expect_delete_notice(signal.SIGUSR2, meant)
    assert (signals.deleted, signals.warned, meant.times) == (True, False, 1)


def test_a_notice_for_a_host_that_was_given_up_is_no_deletion(signals: Signals) -> None:
    signals.expect_delete_notice(signal.SIGUSR2, Meant(given_up=True))
    assert not signals.given_up
    send(signal.SIGUSR2)
    assert (signals.given_up, signals.deleted, signals.warned) == (True, False, False)


def test_a_training_that_heeds_no_notice_lives_on_and_one_that_does_gets_it() -> None:
    deaf = "import os, signal; os.kill(os.getpid(), signal.SIGUSR2); print('alive')"
    heeds = f"import signal; signal.signal(signal.SIGUSR2, lambda *_: print('heard')); {deaf}"
    for code, said in ((deaf, "alive"), (heeds, "heard\nalive")):
        done = subprocess.run(ignoring_notices([sys.executable, "-c", code]), capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout.strip()) == (0, said)
