"""Chunks: what goes in comes out, and a summary says the truth about it."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.errors import StorageError
from onward.tracker.series.chunks import GRAIN, Columns, in_order, pack, read_summary, unpack

STEPS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TIMES = st.integers(min_value=0, max_value=2**62)
VALUES = st.floats(width=64) | st.floats(width=32)
POINTS = st.lists(st.tuples(STEPS, TIMES, VALUES), min_size=1, max_size=200)


def columns(points: list[tuple[int, int, float]]) -> Columns:
    return in_order(Columns([p[0] for p in points], [p[1] for p in points], [p[2] for p in points]))


def bits(values: object) -> list[bytes]:
    return [b"nan" if v != v else struct.pack("<d", v) for v in values]  # type: ignore[attr-defined]


@given(POINTS)
def test_every_point_comes_out_as_it_went_in(points: list[tuple[int, int, float]]) -> None:
    answer = columns(points)
    back = unpack(pack(answer).data)
    assert (list(back.steps), list(back.times), bits(back.values)) == (list(answer.steps), list(answer.times), bits(answer.values))


@given(POINTS)
def test_the_head_of_a_chunk_says_what_is_in_it(points: list[tuple[int, int, float]]) -> None:
    packed = pack(columns(points))
    finite = [v for _, _, v in points if math.isfinite(v)]
    assert packed.bad == len(points) - len(finite)
    assert (packed.low, packed.high) == ((min(finite), max(finite)) if finite else (None, None))
    assert (packed.first_step, packed.last_step) == (min(p[0] for p in points), max(p[0] for p in points))


@given(st.lists(st.tuples(STEPS, TIMES, VALUES), min_size=GRAIN + 1, max_size=200))
def test_no_spike_is_missing_in_the_summary(points: list[tuple[int, int, float]]) -> None:
    packed = pack(columns(points))
    summary = read_summary(packed.summary)
    assert len(summary) == -(-len(points) // GRAIN)
    assert sum(summary.bads) == packed.bad
    if packed.low is not None and packed.high is not None:
        assert (min(summary.lows), max(summary.highs)) == (packed.low, packed.high)


def test_the_last_value_is_the_greatest_of_the_last_moment() -> None:
    assert pack(Columns([1, 5, 5, 5], [1, 9, 9, 9], [7.0, 2.0, 3.0, math.nan])).last_value == 3.0
    assert math.isnan(pack(Columns([1], [1], [math.nan])).last_value)


def test_what_a_float32_tensor_yields_takes_four_bytes_a_value() -> None:
    exact = [struct.unpack("<f", struct.pack("<f", math.sin(i)))[0] for i in range(4096)]
    rough = [math.sin(i) for i in range(4096)]
    short, long = (len(pack(Columns(range(4096), range(4096), values)).data) for values in (exact, rough))
    assert short < 4.3 * 4096 < long < 8.3 * 4096


def test_a_step_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        pack(Columns([2**63], [0], [1.0]))
    with pytest.raises(OverflowError):
        pack(Columns([0, 2**63], [0, 0], [1.0, 1.0]))


@pytest.mark.parametrize("spoil", [lambda d: d[:20], lambda d: d[:6] + b"\x00" * (len(d) - 6), lambda d: b""])
def test_a_damaged_chunk_is_said_to_be_damaged(spoil: object) -> None:
    data = pack(Columns(list(range(100)), list(range(0, 200, 2)), [math.sin(i) for i in range(100)])).data
    with pytest.raises(StorageError, match="damaged"):
        unpack(spoil(data))  # type: ignore[operator]


def test_a_chunk_of_a_newer_format_says_so() -> None:
    data = pack(Columns([1], [1], [1.0])).data
    with pytest.raises(StorageError, match="unknown format 9"):
        unpack(b"\x09" + data[1:])
