"""Points as clients send them, read and checked. Pure; the hot door and the routes share it."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

from onward.errors import InvalidInput
from onward.model.metric import Point

MOST = 10_000  # points in one call
_WORDS = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "+infinity": math.inf, "-infinity": -math.inf, "-inf": -math.inf}
_LATEST = 1e11  # unix seconds; what is above is milliseconds
_STEP = 1 << 63


def decode_body(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the body is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise InvalidInput("the body is not a JSON object", hint='send {"name": …, "value": …, "step": …}')
    return data


def one_point(data: dict[str, Any], now: float) -> Point:
    """{name, value, step} and, if it likes, timestamp."""
    try:
        name, value = data["name"], data["value"]
    except KeyError as error:
        raise InvalidInput(f"{error.args[0]} is missing", hint='send {"name": …, "value": …, "step": …}') from error
    return _name(name, "name"), _step(data.get("step")), _time(data.get("timestamp"), now), _value(value, "value")


def step_of_points(data: dict[str, Any], now: float) -> list[Point]:
    """{step, metrics: {name: value}, timestamp}: several metrics of one step."""
    metrics = data.get("metrics")
    if not isinstance(metrics, dict) or len(metrics) > MOST:
        raise InvalidInput("metrics must be an object of names and values", hint='send {"step": …, "metrics": {"loss": …}}')
    step, at = _step(data.get("step")), _time(data.get("timestamp"), now)
    return [(_name(name, f"metrics.{name[:40]}"), step, at, _value(value, f"metrics.{name[:40]}")) for name, value in metrics.items()]


def many_points(data: dict[str, Any], now: float) -> list[Point]:
    """{points: [{name, value, step, timestamp}]}."""
    points = data.get("points")
    if not isinstance(points, list) or len(points) > MOST:
        raise InvalidInput(f"points must be a list of at most {MOST}", hint="send more in several calls")
    if not all(isinstance(point, dict) for point in points):
        raise InvalidInput("points contains something that is not an object")
    found = []
    for index, point in enumerate(points):
        try:
            found.append(one_point(point, now))
        except InvalidInput as error:
            raise InvalidInput(f"points.{index}: {error.message}", hint=error.hint) from error
    return found


def checked_name(name: Any) -> str:
    return _name(name, "name")


def _name(name: Any, at: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= 250 or "\x00" in name:
        raise InvalidInput(f"{at}: a metric's name must be a string of 1 to 250 characters")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{at}: a metric's name contains a broken character") from error
    return name


def _value(value: Any, at: str) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError as error:
            raise InvalidInput(f"{at}: the value does not fit into a 64-bit float") from error
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    raise InvalidInput(f"{at}: a value must be a number (or NaN, Infinity, -Infinity); found {str(value)[:40]!r}")


def _step(step: Any) -> int:
    if isinstance(step, int) and not isinstance(step, bool):
        if -_STEP <= step < _STEP:
            return step
        raise InvalidInput("step: it does not fit into 64 bits")
    if step is None:
        return 0
    if isinstance(step, float) and step.is_integer() and abs(step) < 2**53:
        return int(step)
    raise InvalidInput(f"step: a step must be a whole number; found {str(step)[:40]!r}")


def _time(timestamp: Any, now: float) -> float:
    """Unix seconds or milliseconds, or an ISO 8601 text; now where nothing is said."""
    if timestamp is None:
        return now
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp).timestamp()
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidInput(f"timestamp: {timestamp[:40]!r} is not a time", hint="send unix seconds, or 2026-11-15T12:00:00Z") from error
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float) or not 0 <= timestamp < _LATEST * 1000:
        raise InvalidInput("timestamp: it is not a unix time", hint="send unix seconds, or 2026-11-15T12:00:00Z")
    return timestamp / 1000 if timestamp >= _LATEST else float(timestamp)
