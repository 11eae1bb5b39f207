"""What a number of measurements says: a mean with its 95 % interval, and whether two of them differ by more than chance.

The measurements of a benchmark are its tasks, one for each shard and seed, weighted by the items they are the mean of.
Shards of one seed are but how the work was cut: where all of them know the spread of their items, the interval is over
the items of all shards together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from onward.inputs.summary.student_t import quantile, two_sided

CONFIDENCE = 0.95
SIGNIFICANT = 0.05
_ROUNDING = 1e-12

ShardAndSeed = tuple[int, int]  # seed and shard


@dataclass(frozen=True, kw_only=True)
class Measurement:
    value: float
    weight: float = 1.0  # items
    spread: float | None = None  # of the items


@dataclass(frozen=True, kw_only=True)
class Estimate:
    mean: float
    error: float | None = None  # standard error of the mean; None where one measurement is all there is
    df: float = 0.0
    over: str = ""  # tasks | items: what the interval is over

    @property
    def half(self) -> float | None:
        """Half of the 95 % interval: what stands after ±."""
        return None if self.error is None else quantile(CONFIDENCE, self.df) * self.error if self.error else 0.0


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """One less the other."""

    difference: float
    half: float | None = None
    p: float | None = None  # None where nothing can be said
    test: str = ""  # paired: the same shards and seeds of both | welch
    pairs: int = 0

    @property
    def significant(self) -> bool:
        return self.p is not None and self.p < SIGNIFICANT


def estimate(measured: Mapping[ShardAndSeed, Measurement]) -> Estimate:
    """Of at least one. Over tasks the error is that of a ratio of sums: with equal weights, the usual one."""
    each = list(measured.values())
    total = math.fsum(one.weight for one in each)
    mean = math.fsum(one.weight * one.value for one in each) / total
    if len({seed for seed, _ in measured}) == 1 and all(one.spread is not None or one.weight == 1 for one in each) and total > len(each):
        within = math.fsum((one.weight - 1) * (one.spread or 0.0) ** 2 for one in each)
        between = math.fsum(one.weight * (one.value - mean) ** 2 for one in each)
        return Estimate(mean=mean, error=math.sqrt((within + between) / (total - 1) / total), df=total - 1, over="items")
    if len(each) > 1:
        squares = math.fsum((one.weight * (one.value - mean)) ** 2 for one in each)
        return Estimate(mean=mean, error=math.sqrt(len(each) / (len(each) - 1) * squares) / total, df=len(each) - 1, over="tasks")
    return Estimate(mean=mean)


def compare_means(ours: Mapping[ShardAndSeed, Measurement], theirs: Mapping[ShardAndSeed, Measurement]) -> MeanDifference:
    """Paired where both have the same shards and seeds, three at least; else Welch's test, where both have an interval."""
    same = ours.keys() == theirs.keys()
    one, other = estimate(ours), estimate(theirs)
    scale = max(abs(measured.value) for measured in (*ours.values(), *theirs.values()))
    if same and (len(ours) > 2 or (len(ours) == 2 and (one.error is None or other.error is None))):
        weights = {key: (ours[key].weight + theirs[key].weight) / 2 for key in ours}
        pairs = {key: Measurement(value=ours[key].value - theirs[key].value, weight=weights[key]) for key in ours}
        return _tested(estimate(pairs), test="paired", scale=scale, pairs=len(pairs))
    difference = one.mean - other.mean
    if one.error is None or other.error is None:
        return MeanDifference(difference=difference)
    a, b = one.error**2, other.error**2
    df = (a + b) ** 2 / (a**2 / one.df + b**2 / other.df) if a + b else one.df + other.df
    return _tested(Estimate(mean=difference, error=math.sqrt(a + b), df=df), test="welch", scale=scale)


def _tested(found: Estimate, *, test: str, scale: float, pairs: int = 0) -> MeanDifference:
    """`scale`: the greatest of the values. What is nothing beside it is what rounding left of nothing."""
    assert found.error is not None
    mean, error = (0.0 if abs(value) <= _ROUNDING * scale else value for value in (found.mean, found.error))
    certain = math.inf if mean else 0.0  # all alike: a difference between them is one for certain, as far as they tell
    p = two_sided(mean / error if error else certain, found.df)
    return MeanDifference(difference=mean, half=replace(found, error=error).half, p=p, test=test, pairs=pairs)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """The same, raised for their number, so that of many comparisons not one in twenty looks real by chance."""
    raised: dict[str, float] = {}
    before = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        before = max(before, min(1.0, p * (len(p_values) - rank)))
        raised[name] = before
    return raised
