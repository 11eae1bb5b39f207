"""Metrics of a run from its folder alone: spools are read as they grow, and legs stitched as the tracker does it."""

from __future__ import annotations

import json
import math
import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onward.rundir.files.growing import lines_from
from onward.rundir.layout import leg_of
from onward.rundir.progress import LONGEST_RECORD
from onward.sdk.packed_metrics import unpacked
from onward.tracker.series.stitch import SYSTEM_PREFIX, limits
from onward.tui.drawing.chart import bucketed
from onward.tui.sources.interface import ChartSeries

_MOST_KEYS = 5000
_PIECE = 2 << 20  # bytes of a file that are read at once


@dataclass(kw_only=True)
class _Column:
    """One metric of one leg, in the order it was logged."""

    steps: array[float] = field(default_factory=lambda: array("d"))
    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    ordered: bool = True

    def add(self, step: float, time: float, value: float) -> None:
        self.ordered = self.ordered and (not self.steps or step >= self.steps[-1])
        self.steps.append(step)
        self.times.append(time)
        self.values.append(value)

    def sort(self) -> None:
        """By step, as a chart wants them; trainings seldom log otherwise."""
        if not self.ordered:
            rows = sorted(zip(self.steps, self.times, self.values, strict=True), key=lambda row: row[:2])
            self.steps, self.times, self.values = (array("d", column) for column in zip(*rows, strict=True))
            self.ordered = True


class SpoolMetrics:
    """Of one run."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._offsets: dict[str, int] = {}
        self._columns: dict[str, dict[int, _Column]] = {}  # by key, then leg
        self._drawn: dict[str, tuple[object, ChartSeries]] = {}  # by key: what it was drawn of
        self.whole = True  # all that is there was read

    def read(self, *, seconds: float = 1.0) -> None:
        """Take what is new, of a long history as much as can be read in so long."""
        until = time.monotonic() + seconds
        while not self._read_once() and time.monotonic() < until:
            pass

    def _read_once(self) -> bool:
        self.whole = True
        try:
            names = sorted(name for name in os.listdir(self._spool) if leg_of(name) is not None and name.endswith(".jsonl"))
        except OSError:
            return True
        for name in names:
            self.whole = self._take(name) and self.whole
        return self.whole

    def keys(self) -> tuple[str, ...]:
        return tuple(sorted(self._columns, key=lambda key: (key.startswith(SYSTEM_PREFIX), key)))

    def last(self, key: str) -> float | None:
        legs = self._columns.get(key)
        return legs[max(legs)].values[-1] if legs else None

    def history(self, key: str, most: int) -> tuple[float | None, ...]:
        legs = self._columns.get(key)
        return tuple(legs[max(legs)].values[-most:]) if legs else ()

    def series(self, run: str, key: str, *, points: int, resumed: dict[int, int], began: float | None) -> ChartSeries | None:
        legs = self._columns.get(key)
        if not legs:
            return None
        of = (points, began, tuple(resumed.items()), tuple((leg, len(column.steps)) for leg, column in legs.items()))
        known = self._drawn.get(key)
        if known is None or known[0] != of:
            known = self._drawn[key] = of, self._draw(run, key, legs, points=points, resumed=resumed, began=began)
        return known[1] if self.whole else replace(known[1], whole=False)

    def _draw(
        self, run: str, key: str, legs: dict[int, _Column], *, points: int, resumed: dict[int, int], began: float | None
    ) -> ChartSeries:
        for column in legs.values():
            column.sort()
        shown = limits(key, {leg: int(column.steps[0]) for leg, column in legs.items()}, resumed)
        steps, times, values = array("d"), array("d"), array("d")
        firsts = []
        for leg in sorted(legs):
            column, last = legs[leg], shown[leg]
            end = len(column.steps) if last is None else bisect_right(column.steps, last)
            if not end:
                continue
            firsts.append(int(column.steps[0]))
            steps.extend(column.steps[:end])
            times.extend(column.times[:end])
            values.extend(column.values[:end])
        places, lows, highs = bucketed(steps, values, points)
        return ChartSeries(
            run=run,
            key=key,
            steps=tuple(places),
            times=tuple(bucketed(times, values, points)[0]),
            lows=tuple(lows),
            highs=tuple(highs),
            points=len(steps),
            began=began,
            legs=tuple(firsts[1:]),
        )

    def _take(self, name: str) -> bool:
        at = self._offsets.get(name, 0)
        try:
            with (self._spool / name).open("rb") as file:
                whole, rest = lines_from(file, at, piece=_PIECE, longest=LONGEST_RECORD)
        except OSError:
            return True
        used = whole or (rest if len(rest) >= LONGEST_RECORD else b"")  # so long a line is no record
        self._offsets[name] = at + len(used)
        leg = leg_of(name) or 1
        for record in _records(whole):
            self._add(leg, record)
        return not used or len(whole) + len(rest) < _PIECE

    def _add(self, leg: int, record: dict[str, Any]) -> None:
        values, at = record["m"], float(record["t"])
        step = math.floor(at) if record.get("kind") == "system" else int(record["s"])
        for key, value in values.items():
            if not isinstance(value, int | float):
                continue
            name = key if record.get("kind") != "system" or key.startswith(SYSTEM_PREFIX) else f"{SYSTEM_PREFIX}{key}"
            if name not in self._columns and len(self._columns) >= _MOST_KEYS:
                continue
            column = self._columns.setdefault(name, {}).setdefault(leg, _Column())
            column.add(step, at, float(value))


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    """Those with metrics. A line that is none, torn or foreign, is passed over."""
    for raw in data.splitlines():
        try:
            record = unpacked(json.loads(raw))
            if isinstance(record, dict) and isinstance(record.get("m"), dict):
                float(record["t"]), int(record.get("s", 0) if record.get("kind") == "system" else record["s"])
                yield record
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
