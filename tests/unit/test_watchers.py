from __future__ import annotations

import logging
import threading

import pytest

from onward.supervisor.watchers import Repeating


def test_what_fails_again_and_again_is_said_once_and_so_is_that_it_works_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    called, done = 0, threading.Event()

    def work() -> None:
        nonlocal called
        called += 1
        if called <= 5:
            raise PermissionError(13, "Permission denied", "logs/leg-0001.out")
        if called > 8:
            done.set()

    repeating = Repeating("mirroring", work, every=0.001)
    assert done.wait(60)
    repeating.stop(within=60)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "logs/leg-0001.out" in said[0] and said[1] == "mirroring works again"
    assert not any(record.exc_info for record in caplog.records), "no traceback for a disk that is closed to us"
