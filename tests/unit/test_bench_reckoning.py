"""What the bench of legs makes of a trace."""

from __future__ import annotations

import math
from typing import Any

from bench.reckoning import account, lost, median

Trace = list[dict[str, Any]]


def life(name: str, *, at: float, first: int, steps: int, saves: tuple[int, ...] = (), ends: bool = True) -> Trace:
    """A step a second, the first one a second after the beginning."""
    trace: Trace = [{"what": "begin", "life": name, "t": at, "step": first, "job": f"job-{name}"}]
    trace += [{"what": "step", "life": name, "t": at + 1 + n, "step": first + n} for n in range(steps)]
    trace += [{"what": "save", "life": name, "t": at + 1 + step - first, "step": step} for step in saves]
    return trace + ([{"what": "end", "life": name, "t": at + steps + 0.5}] if ends else [])


def test_an_unbroken_training_keeps_all_and_repeats_nothing() -> None:
    trace = life("a", at=0, first=0, steps=10)
    found = account(trace, total=10)
    assert (found.lives, found.finished, found.kept, found.done, found.repeated, found.pauses) == (1, True, 10, 10, 0, ())
    assert lost(trace, total=10) == 0


def test_a_life_that_saved_as_it_left_loses_nothing_and_its_pause_is_measured_to_the_next_step() -> None:
    trace = [*life("a", at=0, first=0, steps=5, saves=(4,)), *life("b", at=8, first=5, steps=5)]
    found = account(trace, total=10)
    assert (found.repeated, lost(trace, total=10)) == (0, 0)
    assert found.pauses == (3.5,)
    assert found.wall == 13


def test_a_killed_life_loses_what_it_did_since_it_saved_and_has_no_pause() -> None:
    trace = [*life("a", at=0, first=0, steps=7, saves=(3,), ends=False), *life("b", at=20, first=4, steps=6)]
    found = account(trace, total=10)
    assert (found.done, found.repeated, found.pauses) == (13, 3, ())
    assert lost(trace, total=10) == 3


def test_an_unfinished_training_keeps_what_is_saved() -> None:
    trace = life("a", at=0, first=0, steps=7, saves=(3,), ends=False)
    found = account(trace, total=10)
    assert (found.finished, found.kept) == (False, 4)
    assert lost(trace, total=10) == 3


def test_a_life_that_found_nothing_to_do_does_not_count() -> None:
    trace = [*life("a", at=0, first=0, steps=10), *life("idle", at=20, first=10, steps=0)]
    assert account(trace, total=10).lives == 1


def test_goodput_is_kept_time_by_allocated_time() -> None:
    found = account(life("a", at=0, first=0, steps=10), total=10)
    assert found.goodput(step_seconds=1.0, allocated=12.5) == 0.8
    assert found.goodput(step_seconds=1.0, allocated=0) == 0


def test_the_median_is_the_middle_or_between_the_two() -> None:
    assert median([3.0, 1.0, 2.0]) == 2
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert median([7.0]) == 7
    assert math.isnan(median([]))
