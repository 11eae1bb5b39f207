"""The limit of a job: moved by an administrator, or asked of a controller that does not answer."""

from __future__ import annotations

from onward.clock import HandClock
from onward.supervisor.stop.limit import TimeLimit

NOW = 1_000_000.0


def limit(*answers: float | None, grace: float | None = None) -> TimeLimit:
    found = iter(answers)
    return TimeLimit(NOW + 3600, HandClock(NOW), end_time=lambda: next(found), grace=lambda: grace)


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
    watched = TimeLimit(None, HandClock(NOW), end_time=lambda: NOW + 60)
    watched.look()
    assert watched.deadline is None
