"""Reading spools: how far a training is, as it goes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from onward.rundir.files.growing import lines_from
from onward.rundir.files.no_links import names_beneath, reading
from onward.rundir.layout import RunDir, leg_of
from onward.sdk.packed_metrics import unpacked

LONGEST_RECORD = 12 << 20  # bytes: some ten thousand metrics with long names
_TAIL = 1 << 16
_PIECE = 1 << 20
_FAR, _NEAR = 64 << 20, 16 << 20  # bytes: further behind than the one, a reader goes on this much before the end
_MOST_KEYS = 20_000  # metrics of which the last value is kept: names that are never used twice would fill the memory
_MOST_SKIPPED = 100


def signs_of_life(run: RunDir, leg: int) -> Iterator[float]:
    """When files of a leg were last written to: a leg at work samples its host every few seconds."""
    for folder in (run.spool, run.logs, run.journals):
        for path in folder.glob(f"leg-{leg:04d}*"):
            with suppress(OSError):
                yield path.stat().st_mtime


@dataclass(kw_only=True)
class Progress:
    """What the records of one leg say so far."""

    total: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    first_time: float | None = None
    last_time: float | None = None
    finished: bool = False
    records: int = 0
    last: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def steps_per_second(self) -> float | None:
        if self.first_step is None or self.last_step is None or self.first_time is None or self.last_time is None:
            return None
        elapsed = self.last_time - self.first_time
        return (self.last_step - self.first_step) / elapsed if elapsed > 0 and self.last_step > self.first_step else None

    @property
    def complete(self) -> bool:
        """The training said so, or has logged the last of the steps it announced."""
        return self.finished or (self.total is not None and self.last_step is not None and self.last_step >= self.total - 1)

    def take(self, record: dict[str, Any]) -> None:
        self.records += 1
        match record.get("kind"):
            case "init":
                self.total = record.get("total") or self.total
            case "finish":
                self.finished = True
            case "reopen":  # a script that trains several times in one job: the next is not complete because the last was
                self.finished = False
            case "skipped":
                if len(self.skipped) < _MOST_SKIPPED:
                    self.skipped.append(str(record.get("reason")))
            case None if "m" in record:
                step, at = int(record["s"]), float(record["t"])
                self.first_step = step if self.first_step is None else min(self.first_step, step)
                self.last_step = step if self.last_step is None else max(self.last_step, step)
                self.first_time = at if self.first_time is None else min(self.first_time, at)
                self.last_time = at if self.last_time is None else max(self.last_time, at)
                if len(self.last) < _MOST_KEYS:
                    self.last.update(record["m"])
                else:
                    self.last.update({key: value for key, value in record["m"].items() if key in self.last})
            case _:
                pass


class SpoolReader:
    """Follows the growing files of one leg's local spool; each call to `read` takes what is new, however much, in bounded memory and time.

    Of a file that is far ahead, as for a publisher that was started again, only the end is read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[str, int] = {}
        self._cut: set[str] = set()  # files of which the line at the offset is not to be taken
        self.progress = Progress()

    def read(self) -> Progress:
        try:
            names = sorted(name for name in os.listdir(self._folder) if ".train-" in name)
        except FileNotFoundError:
            return self.progress
        for name in names:
            with (self._folder / name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size > self._offsets.get(name, 0):
                    self._follow(file, name, size)
        return self.progress

    def _follow(self, file: BinaryIO, name: str, size: int) -> None:
        at = self._offsets.get(name, 0)
        if size - at > _FAR:
            if not at:
                _take_line(self.progress, file.readline(LONGEST_RECORD))  # it says how many steps there will be
            at = size - _NEAR
            self._cut.add(name)
        while at < size:
            whole, rest = lines_from(file, at, piece=min(_PIECE, size - at), longest=LONGEST_RECORD)
            if not whole:
                if len(rest) >= LONGEST_RECORD:  # no record of ours
                    at += len(rest)
                    self._cut.add(name)
                    continue
                break
            lines = whole.split(b"\n")[:-1]
            if name in self._cut:
                self._cut.discard(name)
                lines = lines[1:]
            for line in lines:
                _take_line(self.progress, line)
            at += len(whole)
        self._offsets[name] = at


def leg_progress(spool: Path, leg: int) -> Progress:
    """Progress of a leg from the ends of its files: cheap however long they are. Rates are of the recent past."""
    progress = Progress()
    root = RunDir(spool.parent).root
    try:
        names = sorted(name for name in names_beneath(root, spool) if leg_of(name) == leg and ".train-" in name)
    except FileNotFoundError:
        return progress
    for name in names:
        with reading(root, spool / name) as file:
            head = file.readline(LONGEST_RECORD)
            size = file.seek(0, os.SEEK_END)
            tail = _tail(file, len(head), size)
        _take_line(progress, head)
        for line in tail:
            _take_line(progress, line)
    return progress


def _tail(file: BinaryIO, after: int, size: int) -> list[bytes]:
    """The last whole lines after a byte: a few kilobytes, or as much more as it takes to have two of them, where records are wide."""
    wanted = _TAIL
    while True:
        start = max(after, size - wanted)
        file.seek(start)
        lines = file.read(size - start).split(b"\n")[1 if start > after else 0 : -1]
        if len(lines) >= 2 or start == after or wanted > 2 * LONGEST_RECORD:
            return lines
        wanted *= 4


def first_step(spool: Path, leg: int) -> int | None:
    """The first step a leg logged."""
    root = RunDir(spool.parent).root
    for path in sorted(spool.glob(f"leg-{leg:04d}.train-*.jsonl")):
        with reading(root, path) as file:
            for _ in range(8):
                try:
                    record = json.loads(file.readline(LONGEST_RECORD) or b"{}")
                    if "m" in record or "v" in record:
                        return int(record["s"])
                except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                    continue
    return None


def _take_line(progress: Progress, line: bytes) -> None:
    """A line that is no record, torn or foreign, is passed over."""
    try:
        record = unpacked(json.loads(line))
        if isinstance(record, dict):
            progress.take(record)
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError):
        return
