from __future__ import annotations

import io

from onward.rundir.files.growing import each_line, lines_from


def read(data: bytes, at: int = 0, *, piece: int = 8, longest: int = 32) -> tuple[bytes, bytes]:
    return lines_from(io.BytesIO(data), at, piece=piece, longest=longest)


def test_whole_lines_are_given_and_a_torn_one_is_kept_apart() -> None:
    assert read(b"a\nbc\nde", piece=100) == (b"a\nbc\n", b"de")
    assert read(b"a\nbc\nde", at=2, piece=100) == (b"bc\n", b"de")
    assert read(b"a\n", at=2) == (b"", b"")


def test_a_line_longer_than_a_piece_is_read_to_its_end() -> None:
    assert read(b"x" * 20 + b"\ny\n") == (b"x" * 20 + b"\ny\n", b"")


def test_of_a_line_longer_than_any_should_be_no_more_is_read_than_that() -> None:
    whole, rest = read(b"x" * 1000)
    assert whole == b"" and 32 <= len(rest) <= 40


def test_each_line_comes_with_the_byte_after_it() -> None:
    assert list(each_line(io.BytesIO(b"a\nbc\n\nde"), 2, longest=32)) == [(b"bc", 5), (b"", 6)]
    assert list(each_line(io.BytesIO(b"a\nde"), 0, longest=32, rest=True)) == [(b"a", 2), (b"de", 4)]


def test_a_line_without_an_end_comes_in_parts_and_nothing_of_it_is_lost() -> None:
    data = b"y\n" + b"x" * (5 << 20)
    parts = list(each_line(io.BytesIO(data), 0, longest=1 << 20, rest=True))
    assert len(parts) > 2 and b"".join(part for part, _ in parts) == data.replace(b"\n", b"")
    assert parts[-1][1] == len(data)
