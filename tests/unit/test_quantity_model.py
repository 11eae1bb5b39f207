from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.errors import InvalidInput
from onward.model.quantity import duration_text, format_bytes, format_duration, format_size, parse_duration, parse_size
from onward.model.spec import Resources


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        (90, 5400),
        ("90:30", 5430),
        ("24:00:00", 86400),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("7-00:00:00", 604800),
        (" 10:00 ", 600),
        ("100:00:00", 360000),
    ],
)
def test_times_are_read_as_slurm_reads_them(text: str | int, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1h", "-5", "1:2:3:4", "1.5", "1-", "0", "00:00:00", "0-0"])
def test_what_is_no_time_is_said_so_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration(text)
    assert repr(text) in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5400, "90 min"),
        (6000, "1 h 40 min"),
        (86400, "24 h"),
        (172_800, "2 d"),
        (200_000, "2 d 7 h"),
    ],
)
def test_a_time_for_people_is_rounded(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words


@given(st.integers(1, 10**8))
def test_a_time_is_read_as_it_is_written(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "mib"),
    [("32G", 32768), ("512M", 512), ("1.5T", 1572864), ("100", 100), (100, 100), ("1g", 1024), ("2GiB", 2048), ("4 GB", 4096), ("0", 0)],
)
def test_sizes_are_read_as_slurm_reads_them(text: str | int, mib: int) -> None:
    assert parse_size(text) == mib


@pytest.mark.parametrize("text", ["1K", "100K", "1023K", "0.1M"])
def test_a_small_size_never_becomes_0_which_means_all_memory_of_the_node(text: str) -> None:
    assert parse_size(text) == 1


@pytest.mark.parametrize("text", ["", "lots", "G", "-1G", "1P", "1,5G", "0x10"])
def test_what_is_no_size_is_said_so_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_size(text)
    assert repr(text) in caught.value.message and "32G" in caught.value.hint


@given(st.integers(0, 10**9))
def test_a_size_is_read_as_it_is_written(mib: int) -> None:
    assert parse_size(format_size(mib)) == mib


def test_sizes_are_written_short_and_exact() -> None:
    assert [format_size(mib) for mib in (0, 512, 1024, 1536, 32768)] == ["0M", "512M", "1G", "1536M", "32G"]


def test_bytes_are_written_for_people() -> None:
    assert [format_bytes(n) for n in (0, 999, 1400, 3_200_000_000, 5e15)] == ["0 B", "999 B", "1.4 kB", "3.2 GB", "5000.0 TB"]


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        (Resources(), 0),
        (Resources(gpus="2"), 2),
        (Resources(gpus="a100:4"), 4),
        (Resources(gpus="a100"), 1),
        (Resources(gres="gpu:a100:2"), 2),
        (Resources(gres="gpu"), 1),
        (Resources(gres="gpu:3,license:7"), 3),
        (Resources(gres="license:7"), 0),
    ],
)
def test_gpus_are_counted_in_either_spelling(resources: Resources, count: int) -> None:
    assert resources.gpu_count() == count
