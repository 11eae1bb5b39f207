"""Groups of curves as one: the mean over all of them, on one grid."""

from __future__ import annotations

import math

import pytest

from onward.tracker.series.aggregate import Curve, aggregate, curve_of, grid_of, span_of, xs_of
from onward.tracker.series.charts import Chart


def curve(*points: tuple[float, float | None]) -> Curve:
    values = [value for _, value in points]
    return Curve([x for x, _ in points], values, values, values)


def chart(steps: list[int], values: list[float | None], **others: object) -> Chart:
    times = [1000.0 + step for step in steps]
    return Chart(run="r", key="k", steps=steps, times=times, lows=values, highs=values, means=values, **others)  # type: ignore[arg-type]


def test_the_mean_has_the_deviation_of_a_sample_and_the_outermost_values() -> None:
    curves = [curve((0, 1.0), (1, 2.0)), curve((0, 3.0), (1, 6.0))]
    aggregated = aggregate(curves, grid_of(curves, 10))
    assert (aggregated.xs, aggregated.means, aggregated.lows, aggregated.highs, aggregated.counts) == (
        [0, 1],
        [2.0, 4.0],
        [1.0, 2.0],
        [3.0, 6.0],
        [2, 2],
    )
    assert aggregated.deviations == [pytest.approx(math.sqrt(2)), pytest.approx(math.sqrt(8))]


def test_a_curve_that_logs_seldom_counts_between_its_points_and_not_beyond_them() -> None:
    often, seldom = curve(*((x, 0.0) for x in range(11))), curve((2, 2.0), (6, 6.0))
    aggregated = aggregate([often, seldom], [0, 2, 4, 6, 8])
    assert aggregated.means == [0.0, 1.0, 2.0, 3.0, 0.0]
    assert aggregated.counts == [1, 2, 2, 2, 1]


def test_a_gap_of_nan_does_not_count_and_spoils_nothing() -> None:
    aggregated = aggregate([curve((0, 1.0), (2, None), (4, 1.0)), curve((0, 3.0), (2, 3.0), (4, 3.0))], [0, 1, 2, 4])
    assert aggregated.means == [2.0, 3.0, 3.0, 2.0]
    assert aggregated.counts == [2, 1, 1, 2]


def test_where_no_curve_has_anything_the_mean_is_left_open() -> None:
    aggregated = aggregate([curve((0, 1.0), (9, None))], [0, 5, 9])
    assert (aggregated.means, aggregated.counts, aggregated.deviations) == ([1.0, None, None], [1, 0, 0], [0.0, None, None])


def test_many_places_become_an_even_grid_that_loses_no_spike() -> None:
    long = curve(*((x, 100.0 if x == 377 else 0.0) for x in range(1000)))
    grid = grid_of([long], 11)
    aggregated = aggregate([long], grid)
    assert (len(grid), grid[0], grid[-1]) == (11, 0, 999)
    assert max(value for value in aggregated.highs if value is not None) == 100.0
    assert grid_of([], 10) == grid_of([curve()], 10) == []
    assert grid_of([long], 1) == [0]


def test_a_range_holds_the_grid() -> None:
    assert grid_of([curve(*((x, 0.0) for x in range(10)))], 20, first=2.5, last=6) == [3, 4, 5, 6]


def test_x_is_the_step_the_time_since_the_start_or_another_metric() -> None:
    loss, epoch = chart([0, 10, 20, 30], [4.0, 3.0, 2.0, 1.0], began=990.0), chart([0, 20], [0.0, 1.0])
    assert xs_of(loss, "step") == [0, 10, 20, 30]
    assert xs_of(loss, "wall") == [1000.0, 1010.0, 1020.0, 1030.0]
    assert xs_of(loss, "relative") == [10.0, 20.0, 30.0, 40.0]
    assert xs_of(loss, "metric:epoch", epoch) == [0.0, 0.5, 1.0, None]
    assert curve_of(loss, xs_of(loss, "metric:epoch", epoch)).means == [4.0, 3.0, 2.0]
    assert curve_of(loss, xs_of(loss, "metric:none")).xs == []


@pytest.mark.parametrize(
    ("first", "last", "span"),
    [(1, 2, (None, 30)), (1.2, 1.8, (None, 20)), (2, None, (10, None)), (None, 0.5, (None, 10)), (9, 10, (1, 0)), (2.2, 2.4, (10, 30))],
)
def test_a_range_of_x_is_asked_for_by_steps_with_a_bucket_more_on_each_side(
    first: float | None, last: float | None, span: tuple[int | None, int | None]
) -> None:
    line = chart([0, 10, 20, 30], [1.0] * 4)
    assert span_of(line, [0.0, 1.0, 2.0, 3.0], first, last) == span


def test_values_near_the_greatest_there_are_do_not_break_the_mean() -> None:
    aggregated = aggregate([curve((0, 1e308)), curve((0, 1.5e308))], [0])
    assert aggregated.means == [pytest.approx(1.25e308)]
    assert aggregated.deviations == [math.inf]
