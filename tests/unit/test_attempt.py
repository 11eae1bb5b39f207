"""How a benchmark task stands, from its attempts alone."""

from __future__ import annotations

from onward.model.pipelines.attempt import LOSSES_BEFORE_GIVING_UP, Attempt, AttemptEnd, AttemptOwner, TaskStatus, task_status, time_spent
from onward.model.pipelines.task import TaskState

FAILED, STOPPED, TIMEOUT = AttemptEnd.FAILED, AttemptEnd.STOPPED, AttemptEnd.TIMEOUT


def attempt(
    number: int, end: AttemptEnd | None = None, *, gone: bool = False, items: int = 0, early: bool = False, seconds: float = 10
) -> Attempt:
    owner = AttemptOwner(run="2026-11-16_A_nightly-worker-001", leg=number)
    return Attempt(
        number=number, owner=owner, host="n1", at=0, end=end, reason="exit code 3", gone=gone, items=items, early=early, seconds=seconds
    )


def standing(*attempts: Attempt, done: bool = False, forgiven: int = 0, retries: int = 1) -> TaskStatus:
    return task_status(attempts, done=done, forgiven=forgiven, retries=retries)


def test_a_task_that_nobody_took_is_open() -> None:
    assert standing() == TaskStatus(state=TaskState.OPEN, next=1)


def test_a_task_with_a_result_is_done_whatever_its_last_attempt_says() -> None:
    assert standing(attempt(1, FAILED), attempt(2), done=True).state is TaskState.DONE


def test_a_task_belongs_to_its_last_attempt_while_that_one_lives() -> None:
    assert standing(attempt(1, STOPPED), attempt(2)).state is TaskState.CLAIMED
    assert standing(attempt(1), attempt(2, gone=True)) == TaskStatus(state=TaskState.OPEN, next=3, losses=2)


def test_a_task_is_tried_again_as_often_as_its_retries_say() -> None:
    assert standing(attempt(1, FAILED)).state is TaskState.OPEN
    given_up = standing(attempt(1, FAILED), attempt(2, TIMEOUT))
    assert (given_up.state, given_up.reason) == (TaskState.FAILED, "exit code 3 (2 times)")


def test_attempts_that_were_stopped_or_lost_use_up_no_retry() -> None:
    many = [attempt(n, STOPPED, items=1, early=True) for n in range(1, 30)] + [attempt(n, gone=True) for n in range(30, 40)]
    assert standing(*many, retries=0).state is TaskState.OPEN


def test_what_is_forgiven_is_not_counted() -> None:
    failed = (attempt(1, FAILED), attempt(2, FAILED))
    assert standing(*failed, forgiven=2) == TaskStatus(state=TaskState.OPEN, next=3)
    assert standing(*failed, attempt(3, FAILED), forgiven=2).state is TaskState.OPEN


def test_a_task_under_which_worker_after_worker_goes_away_is_given_up() -> None:
    lost = [attempt(n, gone=True) for n in range(1, LOSSES_BEFORE_GIVING_UP + 1)]
    assert standing(*lost[:-1]).state is TaskState.OPEN
    assert standing(*lost).reason == "20 workers were lost while they ran it, the last on n1"
    got_on = [attempt(n, gone=True, items=1) for n in range(1, 100)]
    assert standing(*got_on) == TaskStatus(state=TaskState.OPEN, next=100), "workers that are killed for another reason"
    assert standing(*lost[:10], attempt(11, gone=True, items=1), attempt(12, gone=True)).losses == 1


def test_a_task_whose_items_are_longer_than_a_workers_time_is_given_up_with_what_to_do() -> None:
    first, second = attempt(1, STOPPED, early=True, seconds=580), attempt(2, STOPPED, early=True, seconds=590)
    given_up = standing(first, second)
    assert "the longest of 590 s" in given_up.reason and "more time" in given_up.hint
    assert standing(attempt(1, STOPPED), attempt(2, STOPPED), attempt(3, STOPPED)).state is TaskState.OPEN, "they came late in their legs"
    assert standing(first, attempt(2, STOPPED, items=1, early=True), attempt(3, STOPPED, early=True)).state is TaskState.OPEN


def test_a_timeout_counts_the_attempts_of_the_present_try_alone() -> None:
    several = (attempt(1, STOPPED), attempt(2, FAILED), attempt(3, STOPPED), attempt(4, STOPPED))
    assert time_spent(several, forgiven=0) == 20
    assert time_spent(several, forgiven=3) == 10
