"""Chunks: the points of one series and leg, cut into pieces and packed, with a summary for charts. Pure: `point_writer` stores them.

A chunk holds up to FULL points in the order of (step, time). Whole numbers are kept as differences in the narrowest width, values as 4
bytes where nothing is lost by it (what a float32 tensor yields) and else as 8; bytes of equal weight stand together, which zlib likes.
The summary has one entry for every GRAIN points, so that a chart of a million points unpacks none of them.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter, le, sub
from typing import Any

from onward.errors import StorageError

FULL = 4096
GRAIN = 32
_SQUEEZE = 24  # fewer points than this are kept as they are
_LEVEL = 1
_FORMAT = 1
_HEAD = struct.Struct("<BBI")  # format, squeezed, count
_COLUMN = struct.Struct("<BqqI")  # how, first, difference, bytes
_ONE = struct.Struct("<BBIBqqIBqqIBqqId")  # a whole chunk of one point
_ENTRY = 8 * 5 + 1  # bytes of an entry of summaries as they were written before
_COUNT = struct.Struct("<I")

_CONSTANT, _INT8, _INT16, _INT32, _INT64, _FLOAT4, _FLOAT8 = range(7)
_TYPES = {_INT8: "b", _INT16: "h", _INT32: "i", _INT64: "q", _FLOAT4: "f", _FLOAT8: "d"}
_HALF = 1 << 63
_LITTLE = sys.byteorder == "little"


@dataclass(frozen=True, slots=True)
class Columns:
    """Points side by side: steps, times in microseconds, values."""

    steps: Sequence[int]
    times: Sequence[int]
    values: Sequence[float]

    def __len__(self) -> int:
        return len(self.steps)

    def upto(self, step: int | None) -> Columns:
        """Those up to and with a step."""
        if step is None or not len(self) or self.steps[-1] <= step:
            return self
        end = bisect_right(self.steps, step)
        return Columns(self.steps[:end], self.times[:end], self.values[:end])

    def since(self, step: int | None) -> Columns:
        if step is None or not len(self) or self.steps[0] >= step:
            return self
        start = bisect_left(self.steps, step)
        return Columns(self.steps[start:], self.times[start:], self.values[start:])


@dataclass(frozen=True, slots=True)
class ChunkSummary:
    """One entry for every GRAIN points. `lows` and `highs` are of finite values: where there are none, +Inf and -Inf."""

    steps: Sequence[int]
    times: Sequence[int]
    lows: array[float]
    highs: array[float]
    sums: array[float]
    bads: Sequence[int]  # NaN and ±Inf among them

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class Packed:
    count: int
    first_step: int
    first_time: int
    last_step: int
    last_time: int
    last_value: float
    bad: int
    low: float | None
    low_step: int | None
    high: float | None
    high_step: int | None
    summary: bytes
    data: bytes


def in_order(columns: Columns) -> Columns:
    """By (step, time); points alike in both stay as they came."""
    steps, times = columns.steps, columns.times
    if all(map(le, steps, steps[1:])) and all(map(le, times, times[1:])):
        return columns
    rows = sorted(zip(steps, times, columns.values, strict=True), key=itemgetter(0, 1))
    return Columns([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def split(columns: Columns) -> list[Columns]:
    """Pieces of at most FULL points, about equally long."""
    count = len(columns)
    if count <= FULL:
        return [columns]
    size = -(-count // -(-count // FULL))
    return [Columns(columns.steps[i : i + size], columns.times[i : i + size], columns.values[i : i + size]) for i in range(0, count, size)]


def pack(columns: Columns) -> Packed:
    """`columns` are in order. Raises OverflowError for what does not fit into 64 bits."""
    steps, times, values = columns.steps, columns.times, columns.values
    count = len(steps)
    if count == 1:
        return _pack_one(steps[0], times[0], values[0])
    finite = values if math.isfinite(sum(values)) else [v for v in values if math.isfinite(v)]
    low = min(finite) if finite else None
    high = max(finite) if finite else None
    return Packed(
        count=count,
        first_step=steps[0],
        first_time=times[0],
        last_step=steps[-1],
        last_time=times[-1],
        last_value=_last_value(columns),
        bad=count - len(finite),
        low=low,
        low_step=None if low is None else steps[values.index(low)],
        high=high,
        high_step=None if high is None else steps[values.index(high)],
        summary=_summarise(columns, clean=len(finite) == count),
        data=_pack_data(columns),
    )


def _pack_one(step: int, time: int, value: float) -> Packed:
    """What `pack` makes of one point, in a tenth of the time: this is how most come."""
    try:
        data = _ONE.pack(_FORMAT, 0, 1, _CONSTANT, step, 0, 0, _CONSTANT, time, 0, 0, _FLOAT8, 0, 0, 8, value)
    except struct.error as error:
        raise OverflowError(str(error)) from error
    good = math.isfinite(value)
    best, where = (value, step) if good else (None, None)
    return Packed(1, step, time, step, time, value, 0 if good else 1, best, where, best, where, b"", data)


def unpack(data: bytes) -> Columns:
    try:
        form, squeezed, count = _HEAD.unpack_from(data)
        if form != _FORMAT:
            raise StorageError(f"a chunk of points has the unknown format {form}", hint="a newer Onward wrote it: use that version")
        body = zlib.decompress(data[_HEAD.size :]) if squeezed else data[_HEAD.size :]
        steps, at = _read_ints(body, 0, count)
        times, at = _read_ints(body, at, count)
        values, _ = _read_floats(body, at, count)
    except (struct.error, zlib.error, ValueError, KeyError) as error:
        raise StorageError(f"a chunk of points is damaged: {error}", hint="restore the database from a backup") from error
    return Columns(steps, times, values)


def read_summary(data: bytes) -> ChunkSummary:
    count, rest = divmod(len(data), _ENTRY)
    if rest:
        return _read_summary(data)
    width = 8 * count  # as they were written before
    parts: list[Any] = [_from_bytes(kind, data[i * width : (i + 1) * width]) for i, kind in enumerate("qqddd")]
    return ChunkSummary(parts[0], parts[1], parts[2], parts[3], parts[4], array("B", data[5 * width :]))


# ── inside ────────────────────────────────────────────────────────────────────


def _last_value(columns: Columns) -> float:
    """Of the points with the highest (step, time), the greatest value; NaN only where there is no other."""
    steps, times, values = columns.steps, columns.times, columns.values
    best = values[-1]
    for i in range(len(steps) - 2, -1, -1):
        if steps[i] != steps[-1] or times[i] != times[-1]:
            break
        if values[i] > best or best != best:
            best = values[i]
    return best


def _summarise(columns: Columns, *, clean: bool) -> bytes:
    steps, times, values = columns.steps, columns.times, columns.values
    starts = range(0, len(steps), GRAIN)
    if len(starts) == 1:  # the chunk's own row says the same
        return b""
    lows, highs, sums, bads = array("d"), array("d"), array("d"), bytearray(len(starts))
    for n, start in enumerate(starts):
        part = values[start : start + GRAIN]
        if not clean:
            kept = [v for v in part if math.isfinite(v)]
            bads[n] = len(part) - len(kept)
            part = kept
        lows.append(min(part, default=math.inf))
        highs.append(max(part, default=-math.inf))
        sums.append(sum(part))
    ints = _write_ints(steps[::GRAIN]) + _write_ints(times[::GRAIN])
    data = b"".join((_COUNT.pack(len(starts)), ints, *map(_to_bytes, (lows, highs, sums)), b"" if clean else bytes(bads)))
    return data if len(data) % _ENTRY else data + b"\0"  # the length tells it from one that was written before


def _read_summary(data: bytes) -> ChunkSummary:
    (count,) = _COUNT.unpack_from(data)
    steps, at = _read_ints(data, _COUNT.size, count)
    times, at = _read_ints(data, at, count)
    lows, highs, sums = (_from_bytes("d", data[at + i * 8 * count : at + (i + 1) * 8 * count]) for i in range(3))
    bads = data[at + 24 * count : at + 25 * count]
    return ChunkSummary(steps, times, lows, highs, sums, bads if len(bads) == count else bytes(count))  # type: ignore[arg-type]


def _pack_data(columns: Columns) -> bytes:
    body = _write_ints(columns.steps) + _write_ints(columns.times) + _write_floats(columns.values)
    count = len(columns)
    if count >= _SQUEEZE:
        return _HEAD.pack(_FORMAT, 1, count) + zlib.compress(body, _LEVEL)
    return _HEAD.pack(_FORMAT, 0, count) + body


def _write_ints(numbers: Sequence[int]) -> bytes:
    first = numbers[0]
    gaps = list(map(sub, numbers[1:], numbers))
    least, most = min(gaps, default=0), max(gaps, default=0)
    if least == most and -_HALF <= least < _HALF:
        array("q", (first, numbers[-1]))  # raises where it does not fit
        return _COLUMN.pack(_CONSTANT, first, least, 0)
    how = next((h for h, bits in ((_INT8, 7), (_INT16, 15), (_INT32, 31)) if -(1 << bits) <= least and most < 1 << bits), _INT64)
    if how == _INT64:
        array("q", numbers)
        gaps = [_wrap(gap) for gap in gaps]  # two numbers of 64 bits may lie further apart than 64 bits can say
    planes = _apart(array(_TYPES[how], gaps))
    return _COLUMN.pack(how, first, 0, len(planes)) + planes


def _read_ints(body: bytes, at: int, count: int) -> tuple[Sequence[int], int]:
    how, first, gap, size = _COLUMN.unpack_from(body, at)
    at += _COLUMN.size
    if how == _CONSTANT:
        return (range(first, first + gap * count, gap) if gap else [first] * count), at
    numbers = list(accumulate(_together(_TYPES[how], body[at : at + size]), initial=first))
    return ([_wrap(n) for n in numbers] if how == _INT64 else numbers), at + size


def _wrap(number: int) -> int:
    return (number + _HALF) % (2 * _HALF) - _HALF


def _write_floats(values: Sequence[float]) -> bytes:
    short = _short(values)
    how, planes = (_FLOAT8, _apart(array("d", values))) if short is None else (_FLOAT4, _apart(short))
    return _COLUMN.pack(how, 0, 0, len(planes)) + planes


def _short(values: Sequence[float]) -> array[float] | None:
    """The same in 4 bytes each, if nothing is lost by it; the first few tell most often."""
    short = array("f")
    for some in (values[:8], values):
        try:
            short = array("f", some)
        except OverflowError:
            return None
        if array("d", short).tobytes() != array("d", some).tobytes():
            return None
    return short


def _read_floats(body: bytes, at: int, count: int) -> tuple[Sequence[float], int]:
    how, _, _, size = _COLUMN.unpack_from(body, at)
    at += _COLUMN.size
    values = _together(_TYPES[how], body[at : at + size])
    if len(values) != count:
        raise ValueError(f"{len(values)} values for {count} points")
    return (array("d", values) if how == _FLOAT4 else values), at + size


def _apart(numbers: array[int] | array[float]) -> bytes:
    """All first bytes, then all second bytes, and so on."""
    data, width = _to_bytes(numbers), numbers.itemsize
    return data if width == 1 else b"".join(data[i::width] for i in range(width))


def _together(kind: str, planes: bytes) -> array[int] | array[float]:
    width = array(kind).itemsize
    data = bytearray(len(planes))
    count = len(planes) // width
    for i in range(width):
        data[i::width] = planes[i * count : (i + 1) * count]
    return _from_bytes(kind, bytes(data))


def _to_bytes(numbers: array[int] | array[float]) -> bytes:
    if not _LITTLE:
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _from_bytes(kind: str, data: bytes) -> array[int] | array[float]:
    numbers = array(kind, data)
    if not _LITTLE:
        numbers.byteswap()
    return numbers
