"""Reading spools: how far a training is, as it goes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.rundir.layout import leg_of

_TAIL = 1 << 16


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
                self.skipped.append(str(record.get("reason")))
            case None if "m" in record:
                step, at = int(record["s"]), float(record["t"])
                self.first_step = step if self.first_step is None else min(self.first_step, step)
                self.last_step = step if self.last_step is None else max(self.last_step, step)
                self.first_time = at if self.first_time is None else min(self.first_time, at)
                self.last_time = at if self.last_time is None else max(self.last_time, at)
                self.last.update(record["m"])
            case _:
                pass


class SpoolReader:
    """Follows the growing files of one leg's local spool; each call to `read` takes what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[str, int] = {}
        self.progress = Progress()

    def read(self) -> Progress:
        try:
            names = sorted(name for name in os.listdir(self._folder) if ".train-" in name)
        except FileNotFoundError:
            return self.progress
        for name in names:
            with (self._folder / name).open("rb") as file:
                file.seek(self._offsets.get(name, 0))
                data = file.read()
            whole = data.rfind(b"\n") + 1
            self._offsets[name] = self._offsets.get(name, 0) + whole
            for line in data[:whole].splitlines():
                _take_line(self.progress, line)
        return self.progress


def leg_progress(spool: Path, leg: int) -> Progress:
    """Progress of a leg from the ends of its files: cheap however long they are. Rates are of the recent past."""
    progress = Progress()
    try:
        names = sorted(name for name in os.listdir(spool) if leg_of(name) == leg and ".train-" in name)
    except FileNotFoundError:
        return progress
    for name in names:
        with (spool / name).open("rb") as file:
            head = file.readline()
            size = file.seek(0, os.SEEK_END)
            start = max(len(head), size - _TAIL)
            file.seek(start)
            tail = file.read()
        _take_line(progress, head)
        lines = tail.split(b"\n")[1 if start > len(head) else 0 : -1]
        for line in lines:
            _take_line(progress, line)
    return progress


def first_step(spool: Path, leg: int) -> int | None:
    """The first step a leg logged."""
    for path in sorted(spool.glob(f"leg-{leg:04d}.train-*.jsonl")):
        with path.open("rb") as file:
            for _ in range(8):
                try:
                    record = json.loads(file.readline() or b"{}")
                    if "m" in record:
                        return int(record["s"])
                except (ValueError, KeyError, TypeError, OverflowError):
                    continue
    return None


def _take_line(progress: Progress, line: bytes) -> None:
    """A line that is no record, torn or foreign, is passed over."""
    try:
        record = json.loads(line)
        if isinstance(record, dict):
            progress.take(record)
    except (ValueError, KeyError, TypeError, OverflowError):
        return
