from __future__ import annotations

import io

from onward.rundir.files.growing import lines_from


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
