"""A file to which another process appends, read from a byte on: its lines, or all that it has got."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 20


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


def each_line(file: BinaryIO, at: int, *, longest: int, rest: bool = False) -> Iterator[tuple[bytes, int]]:
    """Every line from a byte on, and the byte after it. Holds a piece of the file at a time, however much it has grown.

    A line that is longer than `longest` comes in parts. `rest`: the last one too, where it has no end yet.
    """
    while True:
        whole, left = lines_from(file, at, piece=_PIECE, longest=longest)
        if whole:
            for line in whole.split(b"\n")[:-1]:
                at += len(line) + 1
                yield line, at
        elif len(left) >= longest or (left and rest):
            at += len(left)
            yield left, at
        else:
            return


def copy_growth(source: Path, at: int, until: int, write: Callable[[bytes, int], int], *, piece: int) -> Iterator[int]:
    """Hand what the source has between two bytes to `write`, with its offset. Yields how much each call took, which may be less."""
    with source.open("rb", buffering=0) as file:
        while at < until and (data := os.pread(file.fileno(), min(piece, until - at), at)):
            while data:
                taken = write(data, at)
                at, data = at + taken, data[taken:]
                yield taken
