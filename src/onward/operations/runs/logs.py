"""What a run printed, leg after leg, in pieces that say where they end: a reader whose connection broke goes on from there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from onward.errors import NotFound
from onward.operations.context import OperationsContext
from onward.operations.runs.record import read_folder, reason
from onward.operations.runs.watch import RunWatch
from onward.rundir.claim import newest_claim
from onward.rundir.files.growing import each_line
from onward.rundir.files.no_links import reading
from onward.rundir.layout import RunDir
from onward.rundir.logs.tail import LONGEST_LINE, last_lines

STREAMS = {"out": "stdout", "err": "stderr"}
_TICK = 0.5
_LOOK_EVERY = 4  # ticks: how the run stands, which reads all its journals
_ALL_EVERY = 60  # ticks: logs of legs that are over, where what one left on its node may be added
_PIECE = 1_000  # lines that are handed on together
_LATE = 2.5  # seconds: what the last leg wrote is mirrored by then

Line = tuple[str, str, str, int]  # the title of its file, the text, the file's name, and the byte after it
Piece = dict[str, Any]


class LegLogReader:
    """Lines that are new since the last look, file by file, in the order of legs. Holds a piece of a file at a time."""

    def __init__(
        self, dir: RunDir, *, streams: Iterable[str], leg: int | None, supervisor: bool, offsets: Mapping[str, int] | None = None
    ) -> None:
        self._dir = dir
        self._streams = tuple(streams)
        self._leg = leg
        self._supervisor = supervisor
        self.offsets: dict[str, int] = dict(offsets or {})

    def read(self, *, rest: bool, legs: Sequence[int] | None = None) -> Iterator[Line]:
        """With `rest`, also a last line that has no end yet. `legs`: only of these."""
        for title, path in self._files(legs):
            try:
                with reading(self._dir.root, path) as file:
                    at = begin = self.offsets.get(path.name, 0)
                    for line, at in each_line(file, begin, longest=LONGEST_LINE + 1, rest=rest):
                        yield title, line.decode(errors="replace"), path.name, at
                    self.offsets[path.name] = at
            except FileNotFoundError:
                continue

    def last(self, count: int, *, rest: bool) -> list[Line]:
        """The last lines of all that is there, read from the ends of the files. What is passed over counts as read."""
        found: list[Line] = []
        for title, path in reversed(list(self._files())):
            try:
                with reading(self._dir.root, path) as file:
                    size = file.seek(0, os.SEEK_END)
                    lines, end = last_lines(file, size, count - len(found), rest=rest)
            except FileNotFoundError:
                continue
            self.offsets[path.name] = end
            found[:0] = [(title, line.decode(errors="replace"), path.name, end) for line in lines]
        return found

    def _files(self, legs: Sequence[int] | None = None) -> Iterator[tuple[str, Path]]:
        if self._supervisor:
            yield "supervisor", self._dir.supervisor_log
            return
        if legs is None or self._leg:
            legs = [self._leg] if self._leg else range(1, newest_claim(self._dir) + 1)
        for number in legs:
            for stream in self._streams:
                yield f"leg {number} {STREAMS[stream]}", self._dir.log(number, stream)


def check_leg(dir: RunDir, number: int, *, to_come: bool) -> None:
    """Refuse a leg that there is not; `to_come`: one that the run may still get is waited for."""
    run = read_folder(dir)
    legs = [leg.number for leg in run.legs.values() if leg.claimed or leg.end or leg.submission]
    if number in legs or (to_come and run.closed is None and number > max(legs, default=0)):
        return
    there = f"legs 1 to {max(legs)}" if len(legs) > 1 else "one leg, leg 1" if legs else "no leg yet"
    raise NotFound(f"there is no leg {number}: {run.spec.name} has {there}", hint=f"onward show {run.spec.id} lists them")


def read_logs(dir: RunDir, reader: LegLogReader, *, lines: int | None, rest: bool, legs: Sequence[int] | None = None) -> Iterator[Piece]:
    """`lines`: only the last so many of what is there. Each piece: `lines` as [title, text], and the `offsets` they end at."""
    if lines is not None:  # in one piece: what is passed over counts as read
        last = reader.last(lines, rest=rest)
        yield {"lines": [[title, text] for title, text, _, _ in last], "offsets": dict(reader.offsets)}
        return
    found = reader.read(rest=rest, legs=legs)
    while batch := list(islice(found, _PIECE)):
        yield {"lines": [[title, text] for title, text, _, _ in batch], "offsets": {name: at for _, _, name, at in batch}}


def follow_logs(context: OperationsContext, dir: RunDir, reader: LegLogReader, *, lines: int | None) -> Iterator[Piece]:
    """As more comes, over legs, until the run is over; also `words` about what it waits for, and an empty piece when nothing is new."""
    yield from read_logs(dir, reader, lines=lines, rest=False)
    watch, said = RunWatch(context, dir), ""
    for tick in count():
        if tick % _LOOK_EVERY == 0:
            seen = watch.look()
        over = seen.run.closed is not None
        if over:
            time.sleep(_LATE)
        begun = [leg.number for leg in seen.run.legs.values() if leg.claimed]
        living = None if over or tick % _ALL_EVERY == 0 else sorted(begun)[-2:]
        yield from read_logs(dir, reader, lines=None, rest=over, legs=living)
        words = reason(seen)
        if over:
            yield {"over": f"the run is {seen.run.state}: {words}"}
            return
        yield {"words": words} if words != said else {}
        said = words
        time.sleep(_TICK)
