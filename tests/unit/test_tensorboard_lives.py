"""Lives of a training are told apart by its event files."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from onward.rundir.event_files.scalar_events import ScalarEvent
from onward.tracker.tensorboard.legs import MOST_TURNS, FileProgress, key_prefixes, leg_at, short_folder, split_into_legs


def points(*steps: int, tag: str = "loss", at: float = 100.0) -> list[ScalarEvent]:
    return [ScalarEvent(at + step, step, ((tag, float(step)),)) for step in steps]


def legs(events: list[ScalarEvent], life: FileProgress | None = None, newest: int = 0) -> list[tuple[int, int | None, list[int]]]:
    found, _ = split_into_legs(events, life or FileProgress(), newest)
    return [(one.leg, one.resumed, sorted({s for one in one.columns.values() for s in one.steps})) for one in found]


def test_a_file_is_a_leg() -> None:
    assert legs(points(1, 2, 3)) == [(1, None, [1, 2, 3])]
    assert legs(points(2, 3), newest=4) == [(5, None, [2, 3])]


def test_a_step_that_goes_back_opens_a_leg_and_an_equal_one_does_not() -> None:
    assert legs(points(1, 2, 2, 3, 2, 3)) == [(1, None, [1, 2, 3]), (2, None, [2, 3])]


def test_metrics_with_steps_of_their_own_do_not_disturb_each_other() -> None:
    events = [
        *points(100, 200, tag="batch_loss"),
        *points(0, tag="epoch_loss"),
        *points(300, tag="batch_loss"),
        *points(1, tag="epoch_loss"),
    ]
    assert [leg for leg, *_ in legs(events)] == [1]


def test_a_writer_that_says_where_it_begins_supersedes_from_there() -> None:
    begun = ScalarEvent(200.0, 50, begins=True)
    assert legs([begun, *points(50, 51)], newest=1) == [(2, 49, [50, 51])]
    assert legs([*points(1, 2), begun, *points(50)]) == [(1, None, [1, 2]), (2, 49, [50])]
    assert legs([begun, begun, *points(50)]) == [(1, 49, [50])]


def test_a_file_whose_steps_are_in_no_order_is_left_as_it_is_after_a_while() -> None:
    wild = points(*(step for _ in range(MOST_TURNS + 50) for step in (2, 1)))
    assert len(legs(wild)) == MOST_TURNS + 1


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.data())
def test_it_does_not_matter_in_how_many_pieces_a_file_is_read(steps: list[int], data: st.DataObject) -> None:
    events = points(*steps)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=5)))
    life, newest, pieces = FileProgress(), 0, []
    for start, end in itertools.pairwise([0, *cuts, len(events)]):
        found, life = split_into_legs(events[start:end], life, newest)
        newest = max([newest, *(one.leg for one in found)])
        pieces += [(one.leg, step) for one in found for entry in one.columns.values() for step in entry.steps]
    whole, _ = split_into_legs(events, FileProgress(), 0)
    assert pieces == [(one.leg, step) for one in whole for entry in one.columns.values() for step in entry.steps]


# ── names ─────────────────────────────────────────────────────────────────────


def test_folders_that_name_a_start_are_left_out_of_keys() -> None:
    assert short_folder("lightning_logs/version_3") == ""
    assert short_folder("runs/Nov15_12-30-00_node7") == ""
    assert short_folder("train") == "train"
    assert short_folder("fold_1/20261115-123000/validation") == "fold_1/validation"


def test_two_folders_of_a_leg_never_share_keys() -> None:
    answer = key_prefixes([("version_0", 1), ("version_1", 1), ("version_2", 2), ("version_0", 1)])
    assert answer == {("version_0", 1): "", ("version_1", 1): "version_1/", ("version_2", 2): ""}


def test_a_file_is_of_the_leg_that_had_started_by_then() -> None:
    starts = {1: 100.0, 2: 200.0, 3: 300.0}
    assert [leg_at(time, starts) for time in (50.0, 100.0, 199.0, 250.0, 999.0)] == [1, 1, 1, 2, 3]
    assert leg_at(5.0, {}) == 1
