"""A file to which another process appends lines, read from a byte on."""

from __future__ import annotations

from typing import BinaryIO


def lines_from(file: BinaryIO, at: int, *, piece: int, longest: int) -> tuple[bytes, bytes]:
    """The whole lines from a byte on, about a piece of them, and what was read of the line after them.

    A line longer than a piece is read to its end, up to `longest` bytes. Where there is none, its line has no end yet, or is longer.
    """
    file.seek(at)
    data = file.read(piece)
    while data and b"\n" not in data and len(data) < longest and (more := file.read(piece)):
        data += more
    whole = data.rfind(b"\n") + 1
    return data[:whole], data[whole:]
