"""The limit of a job: moved by an administrator, or asked of a controller that does not answer."""

from __future__ import annotations

import threading

from beds.waiting import until as waited
from onward.clock import ManualClock
from onward.supervisor.stop.suspension import SuspensionClock
from onward.supervisor.stop.time_limit import TimeLimit

NOW = 1_000_000.0


def limit(*answers: float | None, grace: float | None = None) -> TimeLimit:
    found = iter(answers)
    return TimeLimit(NOW + 3600, ManualClock(NOW), end_time=lambda: next(found), grace=lambda: grace)


def test_a_limit_that_was_moved_is_noticed_and_said_either_way() -> None:
    watched = limit(NOW + 7200, NOW + 1800)
    watched.look()
    assert watched.deadline == NOW + 7200 and watched.news == "the job's time limit was moved by +60 min"
    watched.look()
    assert watched.deadline == NOW + 1800 and watched.news == "the job's time limit was moved by -90 min"


def test_an_answer_that_differs_by_rounding_or_is_missing_or_past_changes_nothing() -> None:
    watched = limit(NOW + 3610, None, NOW - 5)
    for _ in range(3):
        watched.look()
    assert watched.deadline == NOW + 3600 and watched.news == ""


def test_the_grace_time_of_the_site_is_asked_once() -> None:
    watched = limit(None, None, grace=120.0)
    assert watched.grace is None
    watched.look()
    assert watched.grace == 120.0


def test_a_job_without_a_limit_gets_none() -> None:
    watched = TimeLimit(None, ManualClock(NOW), end_time=lambda: NOW + 60)
    watched.look()
    assert watched.deadline is None


def test_a_limit_that_is_moved_beyond_the_runs_own_time_is_not_followed() -> None:
    watched = TimeLimit(NOW + 3600, ManualClock(NOW), end_time=lambda: NOW + 9000, latest=NOW + 3600)
    watched.look()
    assert (watched.deadline, watched.news) == (NOW + 3600, "")


def watched_since(before: float, *answers: float | None) -> tuple[TimeLimit, ManualClock]:
    """A limit of an hour that was last looked at so many seconds ago."""
    found, clock = iter(answers), ManualClock(NOW)
    made = TimeLimit(NOW + 3600, clock, end_time=lambda: next(found))
    made._thread = object()  # type: ignore[assignment]  # one that looks every ten minutes
    clock.sleep(before)
    return made, clock


def test_a_limit_is_asked_for_once_more_before_a_training_is_stopped_by_it() -> None:
    watched, clock = watched_since(3500, NOW + 7200)
    assert watched.is_current(clock.now(), needed_at=NOW + 3540), "there is time yet"
    clock.sleep(10)
    watched.is_current(clock.now(), needed_at=NOW + 3540)
    assert waited(lambda: watched.deadline == NOW + 7200, timeout=30)
    assert waited(lambda: watched.is_current(clock.now(), needed_at=NOW + 3540), timeout=30)


def test_a_controller_that_does_not_answer_then_is_not_waited_for() -> None:
    asked, release = threading.Event(), threading.Event()

    def silent() -> float | None:
        asked.set()
        release.wait(30)
        return None

    clock = ManualClock(NOW)
    watched = TimeLimit(NOW + 3600, clock, end_time=silent)
    watched._thread = object()  # type: ignore[assignment]
    clock.sleep(10_000)  # a job that was suspended until long after its old limit
    assert not watched.is_current(clock.now(), needed_at=NOW + 3540)
    assert asked.wait(30)
    clock.sleep(14)
    assert not watched.is_current(clock.now(), needed_at=NOW + 3540)
    clock.sleep(1)
    assert watched.is_current(clock.now(), needed_at=NOW + 3540)
    release.set()


def test_a_standstill_is_what_takes_longer_than_any_work() -> None:
    times = iter([0.0, 0.5, 59.0, 60.0, 7260.0, 7261.0])
    stood = SuspensionClock(lambda: next(times))
    assert [stood.seconds() for _ in range(5)] == [0.0, 0.0, 0.0, 7200.0, 0.0]
