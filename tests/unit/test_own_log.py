"""The supervisor's own log on a disk that is full: quiet, and told once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from onward.supervisor.own_log import OwnLog

FULL = Path("/dev/full")


@pytest.fixture
def logger() -> logging.Logger:
    return logging.Logger("own-log")


def test_lines_that_a_full_disk_does_not_take_leave_no_stack_and_are_told_once(
    logger: logging.Logger, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "supervisor.log"
    with log.open("w") as room:
        handler = OwnLog(room)
        logger.addHandler(handler)
        logger.info("before")
        full = FULL.open("w")
        handler.setStream(full)
        logger.info("one")
        logger.info("two")
        handler.stream = room  # without the flush of what cannot be written
        logger.info("after")
        logger.info("later")
        with pytest.raises(OSError, match="No space left"):
            full.close()
    answer = "2 messages may be missing above: the log could not be written (No space left on device)"
    assert log.read_text().splitlines() == ["before", "after", answer, "later"]
    assert capfd.readouterr() == ("", "")


def test_a_mistake_in_a_message_is_still_told(logger: logging.Logger, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "supervisor.log").open("w") as room:
        logger.addHandler(OwnLog(room))
        logger.info("%d", "not a number")
    assert "--- Logging error ---" in capfd.readouterr().err
