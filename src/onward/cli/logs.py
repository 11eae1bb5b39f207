"""`onward logs`: what a run printed, leg after leg; with -f as it comes, also before the first leg has started."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.desk import RunArgument, open_desk, open_run
from onward.cli.render import out, safe, say

if TYPE_CHECKING:
    from onward.operations.wiring import Desk
    from onward.rundir.layout import RunDir

_TICK = 0.3
_CHUNK = 1 << 20
_LATE = 1.2  # seconds: what the last leg wrote is mirrored by then
_NAMES = {"out": "stdout", "err": "stderr"}

Line = tuple[str, str]  # the title of its file, and the line


def logs(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more comes, over legs, until the run is over.")] = False,
    leg: Annotated[int | None, typer.Option("--leg", min=1, help="Only this leg.", show_default=False)] = None,
    err: Annotated[bool, typer.Option("--err", help="Only stderr.")] = False,
    stdout: Annotated[bool, typer.Option("--out", help="Only stdout.")] = False,
    supervisor: Annotated[bool, typer.Option("--supervisor", help="The supervisor's own log instead.")] = False,
    lines: Annotated[int | None, typer.Option("--lines", "-n", min=0, help="Only the last so many lines.", show_default=False)] = None,
) -> None:
    """Print a run's output."""
    desk = open_desk()
    dir = open_run(desk, run)
    streams = tuple(name for name, wanted in (("out", stdout or not err), ("err", err or not stdout)) if wanted)
    reader = _Reader(dir, streams=streams, leg=leg, supervisor=supervisor)
    shown = _Printer()
    found = reader.read(rest=not follow)
    for line in found if lines is None else deque(found, maxlen=lines):
        shown.print(line)
    if follow:
        _follow(desk, dir, reader, shown)
    elif shown.title is None and lines != 0:
        which = f"leg {leg}" if leg else "the run"
        say(f"{which} printed nothing" if dir.done.exists() else f"{which} has printed nothing yet; -f waits for it")


class _Printer:
    def __init__(self) -> None:
        self.title: str | None = None

    def print(self, line: Line) -> None:
        title, text = line
        if title != self.title:
            say(f"── {title} " + "─" * max(2, 60 - len(title)))
            self.title = title
        out(safe(text))


class _Reader:
    """Lines that are new since the last look, file by file, in the order of legs. Holds a piece of a file at a time."""

    def __init__(self, dir: RunDir, *, streams: tuple[str, ...], leg: int | None, supervisor: bool) -> None:
        self._dir = dir
        self._streams = streams
        self._leg = leg
        self._supervisor = supervisor
        self._offsets: dict[Path, int] = {}

    def read(self, *, rest: bool) -> Iterator[Line]:
        """With `rest`, also a last line that has no end yet."""
        for title, path in self._files():
            try:
                with path.open("rb") as file:
                    file.seek(self._offsets.get(path, 0))
                    left = b""
                    while chunk := file.read(_CHUNK):
                        *whole, left = (left + chunk).split(b"\n")
                        for line in whole:
                            yield title, line.decode(errors="replace")
                    if left and rest:
                        yield title, left.decode(errors="replace")
                    self._offsets[path] = file.tell() - (0 if rest else len(left))
            except FileNotFoundError:
                continue

    def _files(self) -> Iterator[tuple[str, Path]]:
        from onward.rundir.claim import newest_claim

        if self._supervisor:
            yield "supervisor", self._dir.supervisor_log
            return
        for number in [self._leg] if self._leg else range(1, newest_claim(self._dir) + 1):
            for stream in self._streams:
                yield f"leg {number} {_NAMES[stream]}", self._dir.log(number, stream)


def _follow(desk: Desk, dir: RunDir, reader: _Reader, shown: _Printer) -> None:
    from onward.cli.follow import Watch
    from onward.operations.inspect import reason

    watch, said = Watch(desk, dir), ""
    try:
        while True:
            seen = watch.look()
            if seen.run.closed:
                time.sleep(_LATE)
            for line in reader.read(rest=seen.run.closed is not None):
                shown.print(line)
            sys.stdout.flush()
            if seen.run.closed:
                say(f"the run is {seen.run.state}: {reason(seen)}")
                return
            words = reason(seen)
            if words != said:
                say(f"… {words}")
                said = words
            time.sleep(_TICK)
    except KeyboardInterrupt:
        say("\nno longer following; the run goes on")
        raise
