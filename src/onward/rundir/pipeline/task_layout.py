"""The layout of a benchmark task's folder, in its pipeline's: the only place that knows its file names.

One writer a file, so nothing is locked: each attempt, numbered, writes files of its own.

<pipeline>/results/tasks/<task>/
├── claim-0001.json    who makes attempt 1: taken by exclusive create
├── out-0001.txt       what its command printed, and err-0001.txt
├── items-0001.txt     the items that were done before it began, a line each
├── end-0001.json      how it ended; not there where its worker was killed
├── again-0001.json    someone asked to try again: attempts up to 1 are not counted
├── result.json        the last word
└── files/             what the command writes itself
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from onward.rundir.layout import PathBelow

_NUMBERED = re.compile(r"^(claim|end|again)-(\d{4,})\.json$")


@dataclass(frozen=True)
class TaskDir:
    path: Path

    def claim(self, number: int) -> Path:
        return self.path / f"claim-{number:04d}.json"

    def out(self, number: int) -> Path:
        return self.path / f"out-{number:04d}.txt"

    def err(self, number: int) -> Path:
        return self.path / f"err-{number:04d}.txt"

    def items_done(self, number: int) -> Path:
        return self.path / f"items-{number:04d}.txt"

    def end(self, number: int) -> Path:
        return self.path / f"end-{number:04d}.json"

    def again(self, number: int) -> Path:
        return self.path / f"again-{number:04d}.json"

    result = PathBelow("result.json")
    files = PathBelow("files")


def numbered(name: str) -> tuple[str, int] | None:
    """`claim-0002.json` is (claim, 2)."""
    match = _NUMBERED.match(name)
    return (match[1], int(match[2])) if match else None
