"""Event files are read as far as they are whole, whatever was torn off or overwritten."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.rundir.event_files.frames import Damage, crc32c, read_frames
from onward.rundir.event_files.scalar_events import ScalarEvent, read_event
from tests import event_files as files

NOW = 1_700_000_000.0
RECORDS = [files.version(NOW), *(files.scalar(NOW + step, step, "loss", step + 0.5) for step in range(1, 30))]
FRAMES = [files.frame(record) for record in RECORDS]
DATA = b"".join(FRAMES)
STARTS = [sum(len(frame) for frame in FRAMES[:index]) for index in range(len(FRAMES) + 1)]


def steps(data: bytes) -> list[int]:
    return [event.step for _, event in read_frames(data, 0, read_event).found if event.values]


def test_the_checksum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"\0" * 32) == 0x8A9136AA


@given(st.binary(max_size=300))
def test_the_checksum_is_the_same_as_bit_by_bit(data: bytes) -> None:
    assert crc32c(data) == files.crc32c(data)


@given(st.integers(0, len(DATA)))
def test_a_torn_tail_is_waited_for_and_nothing_before_it_is_lost(cut: int) -> None:
    frames = read_frames(DATA[:cut], 0, read_event)
    whole = sum(start <= cut for start in STARTS[1:])
    assert len(frames.found) == whole
    assert (frames.used, frames.damaged) == (STARTS[whole], [])
    rest = read_frames(DATA[frames.used :], frames.used, read_event)
    assert len(frames.found) + len(rest.found) == len(RECORDS)
    assert rest.damaged == []


@settings(max_examples=300)
@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_flipped_byte_costs_one_record_and_its_place_is_told(at: int, change: int) -> None:
    data = bytearray(DATA)
    data[at] ^= change
    frames = read_frames(bytes(data), 0, read_event)
    hit = max(index for index, start in enumerate(STARTS) if start <= at)
    assert [offset for offset, _ in frames.found] == [start for index, start in enumerate(STARTS[:-1]) if index != hit]
    if hit == len(FRAMES) - 1:  # the last: it may still be on its way
        assert (frames.damaged, frames.used) == ([], STARTS[hit])
    else:
        assert frames.damaged == [Damage(STARTS[hit], len(FRAMES[hit]))]
        assert frames.used == len(DATA)


@settings(max_examples=200)
@given(st.integers(0, len(DATA) - 1), st.binary(min_size=1, max_size=400))
def test_whatever_is_written_into_a_file_the_records_around_it_are_found(at: int, junk: bytes) -> None:
    index = min(range(len(STARTS) - 1), key=lambda i: abs(STARTS[i] - at))
    data = DATA[: STARTS[index]] + junk + DATA[STARTS[index] :]
    frames = read_frames(data, 0, read_event)
    good = {offset for offset, _ in frames.found}
    assert good >= set(STARTS[:index])
    assert len(frames.found) >= len(RECORDS) - 1  # one may hide behind a length that happens to be right
    assert frames.used == len(data)


@given(st.binary(max_size=200))
def test_no_bytes_at_all_make_the_reader_fall_over(junk: bytes) -> None:
    read_frames(junk, 0, read_event)
    read_frames(files.frame(junk) + DATA, 0, read_event)


def test_a_region_of_zeros_is_waited_for_and_passed_over_once_something_follows() -> None:
    waiting = read_frames(DATA + b"\0" * 500, 0, read_event)
    assert (waiting.used, waiting.damaged) == (len(DATA), [])
    after = read_frames(DATA + b"\0" * 500 + FRAMES[1], 0, read_event)
    assert after.damaged == [Damage(len(DATA), 500)]
    assert after.found[-1][0] == len(DATA) + 500


# ── events ────────────────────────────────────────────────────────────────────

FLOAT, DOUBLE, INT32, INT64, HALF, BFLOAT16, STRING = 1, 2, 3, 9, 19, 14, 7


def one(record: bytes) -> ScalarEvent | None:
    return read_event(memoryview(record))


def value(content: bytes, *, of: str | None = "scalars") -> float | None:
    event = one(files.tensor(NOW, 3, "t", content, of=of))
    return event.values[0][1] if event else None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (files.number(1, FLOAT) + files.varint(5 << 3 | 5) + struct.pack("<f", 1.5), 1.5),
        (files.number(1, FLOAT) + files.text(5, struct.pack("<f", 1.5)), 1.5),
        (files.number(1, FLOAT) + files.text(4, struct.pack("<f", 2.5)), 2.5),
        (files.number(1, DOUBLE) + files.text(6, struct.pack("<d", 0.1)), 0.1),
        (files.number(1, DOUBLE) + files.text(4, struct.pack("<d", -0.1)), -0.1),
        (files.number(1, INT32) + files.number(7, -4), -4.0),
        (files.number(1, INT64) + files.text(10, files.varint(-9)), -9.0),
        (files.number(1, INT64) + files.text(4, struct.pack("<q", 1 << 40)), float(1 << 40)),
        (files.number(1, HALF) + files.number(13, 0x3E00), 1.5),
        (files.number(1, BFLOAT16) + files.text(4, b"\xc0\x3f"), 1.5),
        (files.number(1, FLOAT) + files.text(2, b""), 0.0),
        (files.number(1, FLOAT) + files.text(2, files.text(2, files.number(1, 1))) + files.text(4, struct.pack("<f", 7.0)), 7.0),
        (files.number(1, FLOAT) + files.text(2, files.text(2, files.number(1, 2))) + files.text(4, struct.pack("<ff", 7.0, 8.0)), None),
        (files.number(1, STRING) + files.text(8, "words"), None),
    ],
)
def test_a_tensor_of_one_number_is_a_scalar_however_it_is_written(content: bytes, expected: float | None) -> None:
    assert value(content) == expected


def test_only_the_scalars_plugin_has_scalars() -> None:
    content = files.number(1, FLOAT) + files.text(4, struct.pack("<f", 2.5))
    assert value(content, of=None) == 2.5
    assert value(content, of="hparams") is None


def test_nan_infinity_and_negative_steps_are_kept() -> None:
    nan = one(files.scalar(NOW, -5, "loss", math.nan))
    assert nan is not None
    assert nan.step == -5
    assert math.isnan(nan.values[0][1])
    infinite = one(files.scalar(NOW, 1, "loss", -math.inf))
    assert infinite is not None
    assert infinite.values == (("loss", -math.inf),)


def test_pictures_and_graphs_are_passed_over_and_a_start_is_told() -> None:
    assert one(files.event(NOW, 1, files.text(4, b"graph"))) is None
    assert one(files.event(NOW, 1, files.text(5, files.text(1, files.text(1, "img") + files.text(4, b"png"))))) is None
    begun = one(files.session_start(NOW, 50))
    assert begun is not None
    assert (begun.begins, begun.step) == (True, 50)


def test_a_long_record_without_scalars_is_passed_over_without_reckoning_its_checksum() -> None:
    data = bytearray(files.frame(files.event(NOW, 1, files.text(4, b"x" * 200_000))))
    data[5000] ^= 1
    frames = read_frames(bytes(data) + DATA, 0, read_event)
    assert (len(frames.found), frames.damaged) == (len(RECORDS), [])
