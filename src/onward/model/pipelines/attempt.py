"""Attempt: one worker's try at a benchmark task; and how the task stands, from its attempts alone.

A task may take several attempts without anything having failed: a worker that nears its limit stops, another goes on
from the items that are done. Only attempts that failed use up the task's retries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from onward.model.pipelines.task import TaskState

LOSSES_BEFORE_GIVING_UP = 20  # workers in a row that went away under a task before it got on: it may be what kills them
STOPS_BEFORE_GIVING_UP = 2  # attempts that had a worker's whole time and did not finish one item


class AttemptEnd(StrEnum):
    DONE = "done"
    FAILED = "failed"  # the command failed, or its output cannot be read
    TIMEOUT = "timeout"
    STOPPED = "stopped"  # its worker had to stop, or the command asked to be run again


@dataclass(frozen=True, kw_only=True)
class AttemptOwner:
    """Who makes an attempt: a worker's run, by its folder's name, and the leg."""

    run: str
    leg: int


@dataclass(frozen=True, kw_only=True)
class Attempt:
    number: int
    owner: AttemptOwner
    host: str
    at: float
    end: AttemptEnd | None = None
    reason: str = ""
    evidence: str = ""  # the last lines that the command wrote
    items: int = 0  # done in this attempt; of one that left no word, 1 stands for any number
    seconds: float = 0.0
    early: bool = False  # it began while most of its worker's time was left
    ended: float | None = None
    gone: bool = False  # the owner is over, whatever it left behind


@dataclass(frozen=True, kw_only=True)
class TaskStatus:
    """How a task stands. `next` is the number of the attempt that may be made now, where it is open."""

    state: TaskState
    next: int
    reason: str = ""
    evidence: str = ""
    hint: str = ""
    losses: int = 0  # workers in a row that went away under it before it got on: others go first


def task_status(attempts: Sequence[Attempt], *, done: bool, forgiven: int, retries: int) -> TaskStatus:
    """`done`: its result is there. `forgiven`: attempts up to this number are not counted, since someone asked to try again."""
    last = max(attempts, key=lambda attempt: attempt.number, default=None)
    following = last.number + 1 if last else 1
    if done:
        return TaskStatus(state=TaskState.DONE, next=following)
    counted = sorted((attempt for attempt in attempts if attempt.number > forgiven), key=lambda attempt: attempt.number)
    if last and last.end is None and not last.gone:
        return TaskStatus(state=TaskState.CLAIMED, next=following)
    given_up = _given_up(counted, retries, following)
    return given_up or TaskStatus(state=TaskState.OPEN, next=following, losses=len(_losses_in_a_row(counted)))


def _given_up(counted: Sequence[Attempt], retries: int, following: int) -> TaskStatus | None:
    bad = [attempt for attempt in counted if attempt.end in (AttemptEnd.FAILED, AttemptEnd.TIMEOUT)]
    if len(bad) > retries:
        times = f" ({len(bad)} times)" if len(bad) > 1 else ""
        return TaskStatus(state=TaskState.FAILED, next=following, reason=bad[-1].reason + times, evidence=bad[-1].evidence)
    lost = _losses_in_a_row(counted)
    if len(lost) >= LOSSES_BEFORE_GIVING_UP:
        return TaskStatus(
            state=TaskState.FAILED,
            next=following,
            reason=f"{len(lost)} workers were lost while they ran it, the last on {lost[0].host}",
            hint="does it use more memory than its workers have?",
        )
    stops = _stops_without_an_item(counted)
    if len(stops) >= STOPS_BEFORE_GIVING_UP:
        longest = max(attempt.seconds for attempt in stops)
        return TaskStatus(
            state=TaskState.FAILED,
            next=following,
            reason=f"{len(stops)} attempts, the longest of {longest:.0f} s, used a worker's whole time without finishing an item",
            hint="give the workers more time, or make the benchmark print a line for each finished item",
        )
    return None


def _losses_in_a_row(counted: Sequence[Attempt]) -> list[Attempt]:
    """The last attempts in a row that left no word and got nothing done, newest first."""
    return list(takewhile(lambda attempt: attempt.end is None and not attempt.items, reversed(counted)))


def _stops_without_an_item(counted: Sequence[Attempt]) -> list[Attempt]:
    """The last attempts in a row that were stopped, early ones alone: a late one had no time to finish anything."""
    found: list[Attempt] = []
    for attempt in reversed(counted):
        if attempt.items or attempt.end in (AttemptEnd.FAILED, AttemptEnd.TIMEOUT):
            break
        if attempt.end is AttemptEnd.STOPPED and attempt.early:
            found.append(attempt)
    return found


def time_spent(attempts: Sequence[Attempt], *, forgiven: int) -> float:
    """Seconds that the present try has taken, over all its attempts: a try ends when one fails, not when a worker leaves."""
    total = 0.0
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        bad = attempt.number <= forgiven or attempt.end in (AttemptEnd.FAILED, AttemptEnd.TIMEOUT)
        total = 0.0 if bad else total + attempt.seconds
    return total
