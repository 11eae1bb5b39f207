"""Means, intervals and tests: against values from tables and from worked examples."""

from __future__ import annotations

import math

import pytest

from onward.inputs.summary.confidence import Estimate, MeanDifference, Measurement, compare_means, estimate, holm
from onward.inputs.summary.student_t import quantile, two_sided

A, B = [1.0, 2, 3.5, 4, 2.2], [2.0, 2.5, 4.5, 4.1, 3.9, 1.0]


def seeds(values: list[float], weight: float = 1) -> dict[tuple[int, int], Measurement]:
    return {(seed, 0): Measurement(value=value, weight=weight) for seed, value in enumerate(values)}


@pytest.mark.parametrize(("df", "t"), [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)])
def test_quantiles_are_those_of_the_tables(df: int, t: float) -> None:
    assert quantile(0.95, df) == pytest.approx(t, abs=1e-4)
    assert two_sided(quantile(0.95, df), df) == pytest.approx(0.05)
    assert two_sided(0.0, df) == 1.0 and two_sided(math.inf, df) == 0.0


def test_a_mean_over_seeds_has_students_interval() -> None:
    found = estimate(seeds([1.0, 2.0, 3.0, 4.0]))
    assert (found.mean, found.over, found.df) == (2.5, "tasks", 3)
    assert found.half == pytest.approx(3.1824 * math.sqrt(5 / 3) / 2, abs=1e-3)


def test_a_mean_is_weighted_by_items() -> None:
    found = estimate({(0, 0): Measurement(value=1.0, weight=30), (1, 0): Measurement(value=0.0, weight=10)})
    assert found.mean == 0.75
    assert found.error == pytest.approx(math.sqrt(2 * ((30 * 0.25) ** 2 + (10 * 0.75) ** 2)) / 40)


def test_shards_of_one_seed_count_as_all_their_items_together() -> None:
    """0 0 1 1 and 1 1: six items, of which four are one, however they were cut."""
    first = Measurement(value=0.5, weight=4, spread=math.sqrt(1 / 3))
    found = estimate({(0, 0): first, (0, 1): Measurement(value=1.0, weight=2, spread=0.0)})
    assert found.mean == pytest.approx(2 / 3) and (found.over, found.df) == ("items", 5)
    assert found.error == pytest.approx(math.sqrt(4 / 15 / 6))


def test_one_value_alone_has_no_interval() -> None:
    assert estimate(seeds([0.7])) == Estimate(mean=0.7) and Estimate(mean=0.7).half is None


def test_the_same_shards_and_seeds_are_compared_in_pairs() -> None:
    found = compare_means(seeds(A), seeds(B[:5]))
    assert (found.test, found.pairs) == ("paired", 5)
    assert [found.difference, found.half, found.p] == pytest.approx([-0.86, 0.748096, 0.0331605], abs=1e-5)
    assert found.significant


def test_others_are_compared_by_welchs_test() -> None:
    found = compare_means(seeds(A), seeds(B))
    assert found.test == "welch" and not found.significant
    assert [found.p, found.half] == pytest.approx([0.570104, 1.766548], abs=1e-5)


def test_values_that_never_vary_differ_for_certain_or_not_at_all() -> None:
    assert compare_means(seeds([1.0] * 3), seeds([2.0] * 3)).p == 0.0
    assert compare_means(seeds([1.0] * 3), seeds([1.0] * 3)).p == 1.0
    assert compare_means(seeds([0.1 + 0.2] * 3), seeds([0.3] * 3)).p == 1.0, "what rounding leaves is no difference"


def test_of_single_values_nothing_is_said_but_their_difference() -> None:
    assert compare_means(seeds([1.0]), seeds([3.0])) == MeanDifference(difference=-2.0)


def test_many_comparisons_raise_each_others_p() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.9}) == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.9})
    assert holm({}) == {}
