"""Student's t distribution, which the standard library does not have. Degrees of freedom may be fractions, as Welch's are."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_EXACT = 1e-14
_MOST_TERMS = 500


def two_sided(t: float, df: float) -> float:
    """How likely a value as far from zero as `t`, or farther, is by chance."""
    if math.isinf(t):
        return 0.0
    return _beta_part(df / (df + t * t), df / 2, 0.5)


@lru_cache(maxsize=4096)  # a table has few numbers of items
def quantile(confidence: float, df: float) -> float:
    """The t that a value stays within, to both sides, with this confidence: 2.262 for 0.95 and 9."""
    low, high = 0.0, 1.0
    while two_sided(high, df) > 1 - confidence:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, df) > 1 - confidence else (low, middle)
    return high


def _beta_part(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on one side alone
        return 1.0 - _beta_part(1 - x, b, a)
    before = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return before * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """Its continued fraction, by Lentz's method."""
    c, d = 1.0, 1.0 / _away(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away(1 + term * d)
            c = _away(1 + term / c)
            total *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return total


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
