"""Sequence numbers and stitching: pure, so every case is a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.tracker.ingest.sequences import Sequences
from onward.tracker.series.stitch import limits


@given(st.lists(st.integers(min_value=0, max_value=60), max_size=200), st.integers(min_value=0, max_value=100))
def test_a_number_is_new_exactly_once_also_after_being_written_down(numbers: list[int], pause: int) -> None:
    taken, seen = Sequences(), set[int]()
    for index, number in enumerate(numbers):
        if index == pause:
            taken = Sequences(str(taken))
        assert taken.add(number) is (number not in seen)
        seen.add(number)
    assert [n for n in range(61) if n in taken] == sorted(seen)


def test_numbers_in_a_row_are_one_range() -> None:
    taken = Sequences()
    for number in [*range(100), *range(200, 300), *range(100, 200)]:
        taken.add(number)
    assert str(taken) == "0-299"


def test_gaps_without_end_do_not_grow_without_end() -> None:
    taken = Sequences()
    for number in range(0, 10_000, 2):
        taken.add(number)
    assert len(str(taken).split(",")) == 1000
    assert 9_998 in taken
    assert 9_997 not in taken
    assert 1 in taken  # too long ago


@pytest.mark.parametrize(
    ("firsts", "resumed", "shown"),
    [
        ({1: 0}, {}, {1: None}),
        ({1: 0, 2: 700}, {2: 600}, {1: 600, 2: None}),
        ({1: 0}, {2: 600}, {1: 600}),  # the new leg has logged nothing yet
        ({1: 0, 2: 501}, {}, {1: 500, 2: None}),  # it did not tell: its first step does
        ({1: 0, 2: 501, 3: 301}, {2: 500, 3: 300}, {1: 300, 2: 300, 3: None}),  # fell back behind an older checkpoint
        ({1: 0, 2: 501, 3: 801}, {2: 500, 3: 800}, {1: 500, 2: 800, 3: None}),
        ({1: 0, 3: 5}, {2: -1}, {1: -1, 3: None}),
        ({1: -(2**63), 2: -(2**63)}, {}, {1: -(2**63), 2: None}),
    ],
)
def test_a_leg_shows_up_to_where_a_later_one_went_on(firsts: dict[int, int], resumed: dict[int, int], shown: dict[int, int | None]) -> None:
    assert limits("loss", firsts, resumed) == shown


def test_nothing_supersedes_the_figures_of_a_machine() -> None:
    assert limits("system/cpu", {1: 0, 2: 0}, {2: 0}) == {1: None, 2: None}
