"""A file that another process appends lines to, read as it grows."""

from __future__ import annotations

import os
from pathlib import Path


class Growing:
    """The whole lines that a file has got since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0

    def lines(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data.rfind(b"\n") + 1
        self._at += whole
        return [line.decode(errors="replace") for line in data[:whole].split(b"\n")[:-1]]


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
