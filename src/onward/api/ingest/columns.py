"""Many points at once, by column: five times as fast as one by one. Pure.

It takes what clients usually send and nothing else: where one item of a call is unusual in any way, the answer is None, and the careful
readers (`points`, MLflow's `wire`) take the call, or say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onward.errors import InvalidInput
from onward.tracker.series.chunks import Columns

ByKey = dict[str, Columns]

_STEP = 1 << 63
_SECONDS = 1e11  # unix seconds; what is above is milliseconds
_LATEST = 10**14  # milliseconds
_WHOLE = {int}
_NUMBERS = ({float}, {int}, {int, float})


def in_columns(items: Sequence[Mapping[str, Any]], key: str, checked: Callable[[str], object], now: float | None) -> ByKey | None:
    """`key`: the field with the metric's name. `now`: what a time is that is left out; with None, times are milliseconds."""
    try:
        keys = [item[key] for item in items]
        steps = [item["step"] for item in items]
        values = [item["value"] for item in items]
        times = _microseconds([item["timestamp"] for item in items] if "timestamp" in items[0] else None, len(items), now)
        if times is None or set(map(type, steps)) != _WHOLE or min(steps) < -_STEP or max(steps) >= _STEP:
            return None
        if set(map(type, values)) not in _NUMBERS:
            return None
        values = list(map(float, values))
        names = set(keys)
        for name in names:
            checked(name)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError, InvalidInput):
        return None
    if len(names) == 1:
        return {keys[0]: Columns(steps, times, values)}
    places: dict[str, list[int]] = {}
    for index, name in enumerate(keys):
        places.setdefault(name, []).append(index)
    return {name: Columns([steps[i] for i in at], [times[i] for i in at], [values[i] for i in at]) for name, at in places.items()}


def _microseconds(column: list[Any] | None, count: int, now: float | None) -> list[int] | None:
    if column is None:
        return None if now is None else [round(now * 1e6)] * count
    kinds = set(map(type, column))
    least, most = min(column), max(column)
    if kinds == _WHOLE and least >= (0 if now is None else _SECONDS) and most < _LATEST:
        return [time * 1000 for time in column]
    if now is not None and kinds in _NUMBERS and least >= 0 and most < _SECONDS:
        return [round(time * 1e6) for time in column]
    return None
