"""A file that another process appends lines to, read as it grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from onward.rundir.files.growing import each_line

_LONGEST = 1 << 20  # bytes of a line


class GrowingFile:
    """The whole lines that a file has got since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0

    def lines(self) -> Iterator[str]:
        """A piece of the file at a time, however much it has grown. A line that is too long comes in parts."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            for line, end in each_line(file, self._at, longest=_LONGEST):
                self._at = end
                yield line.decode(errors="replace")


def end_the_line(path: Path) -> None:
    """A line that a kill tore must not become one with the next that is appended."""
    try:
        with path.open("rb+") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
    except FileNotFoundError:
        return
