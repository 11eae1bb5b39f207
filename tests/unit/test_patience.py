"""How long a job waits for its storage: by the leg's length; and that it waits at all, for every mood of a file system."""

from __future__ import annotations

import errno
import os

import pytest

from onward.clock import ManualClock
from onward.model.policy.storage_patience import early_pause, may_wait_again, storage_patience
from onward.supervisor.leg.storage_wait import wait_for_storage

DAY = 86400.0


@pytest.mark.parametrize(("limit", "seconds"), [(DAY, 900), (7 * DAY, 900), (None, 900), (3600.0, 360), (600.0, 60), (60.0, 30), (4.0, 2)])
def test_a_leg_waits_for_its_storage_as_long_as_its_length_allows(limit: float | None, seconds: float) -> None:
    assert storage_patience(limit) == seconds


def test_jobs_that_only_wait_for_a_disk_are_paid_for_two_hours_and_no_longer() -> None:
    waited, jobs = 0.0, 0
    while may_wait_again(waited):
        waited, jobs = waited + storage_patience(DAY), jobs + 1
    assert (waited, jobs) == (7200.0, 8)


def test_jobs_that_come_too_early_wait_longer_each_time() -> None:
    assert [early_pause(times, DAY) for times in range(7)] == [0, 60, 120, 240, 480, 900, 900]
    assert early_pause(1000, DAY) == 900
    assert early_pause(3, 60.0) == 30


class Moody:
    """Fails for a while, in some way, before it works."""

    def __init__(self, clock: ManualClock, number: int, *, seconds: float) -> None:
        self.clock, self.number, self.well_at, self.tried = clock, number, clock.now() + seconds, 0

    def act(self) -> str:
        self.tried += 1
        if self.clock.now() < self.well_at:
            raise OSError(self.number, os.strerror(self.number))
        return "done"


MOODS = [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOENT]


@pytest.mark.parametrize("number", MOODS)
@pytest.mark.parametrize("seconds", [0.0, 13.0, 60.0, 800.0])
def test_storage_that_fails_for_a_while_is_waited_out(number: int, seconds: float) -> None:
    clock = ManualClock()
    moody, began = Moody(clock, number, seconds=seconds), clock.now()
    assert wait_for_storage("writing", moody.act, clock=clock, until=began + 900) == "done"
    assert seconds <= clock.now() - began <= seconds + 5


def test_storage_that_stays_away_is_given_up_with_its_own_error() -> None:
    clock = ManualClock()
    moody, began = Moody(clock, errno.EROFS, seconds=1e9), clock.now()
    with pytest.raises(OSError, match="Read-only"):
        wait_for_storage("writing", moody.act, clock=clock, until=began + 900)
    assert clock.now() == began + 900
    assert moody.tried < 200, "a file server in trouble is not pressed"


def test_a_job_that_is_told_to_end_waits_no_longer() -> None:
    clock = ManualClock()
    moody = Moody(clock, errno.ENOSPC, seconds=1e9)
    with pytest.raises(OSError):
        wait_for_storage("writing", moody.act, clock=clock, until=clock.now() + 900, ending=lambda: moody.tried > 3)
    assert moody.tried == 4
