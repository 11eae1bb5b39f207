"""`onward logs`: what a run printed, leg after leg; with -f as it comes, also before the first leg has started."""

from __future__ import annotations

import time
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
_ASK_EVERY = 10.0
_NAMES = {"out": "stdout", "err": "stderr"}


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
    streams = ("err",) if err else ("out",) if stdout else ("out", "err")
    reader = _Reader(dir, streams=streams, leg=leg, supervisor=supervisor)
    texts = list(reader.read())
    if lines is not None:
        texts = [(title, line) for title, text in texts for line in text.splitlines(keepends=True)][-lines:] if lines else []
    shown = _Printer()
    for title, text in texts:
        shown.print(title, text)
    if follow:
        _follow(desk, dir, reader, shown)
    elif not texts:
        say("nothing printed yet; -f waits for it")


class _Printer:
    def __init__(self) -> None:
        self._title = ""

    def print(self, title: str, text: str) -> None:
        if title != self._title:
            say(f"── {title} " + "─" * max(2, 60 - len(title)))
            self._title = title
        for line in text.splitlines():
            out(safe(line))


class _Reader:
    """Whole lines that are new since the last look, file by file, in the order of legs."""

    def __init__(self, dir: RunDir, *, streams: tuple[str, ...], leg: int | None, supervisor: bool) -> None:
        self._dir = dir
        self._streams = streams
        self._leg = leg
        self._supervisor = supervisor
        self._offsets: dict[Path, int] = {}

    def read(self, *, rest: bool = False) -> Iterator[tuple[str, str]]:
        for title, path in self._files():
            try:
                with path.open("rb") as file:
                    file.seek(self._offsets.get(path, 0))
                    data = file.read()
            except FileNotFoundError:
                continue
            whole = len(data) if rest else data.rfind(b"\n") + 1 or (len(data) if path not in self._offsets else 0)
            self._offsets[path] = self._offsets.get(path, 0) + whole
            if whole:
                yield title, data[:whole].decode(errors="replace")

    def _files(self) -> Iterator[tuple[str, Path]]:
        from onward.rundir.claim import newest_claim

        if self._supervisor:
            yield "supervisor", self._dir.supervisor_log
            return
        for number in [self._leg] if self._leg else range(1, newest_claim(self._dir) + 1):
            for stream in self._streams:
                yield f"leg {number} {_NAMES[stream]}", self._dir.log(number, stream)


def _follow(desk: Desk, dir: RunDir, reader: _Reader, shown: _Printer) -> None:
    from onward.operations.inspect import look, reason

    said, asked = "", 0.0
    try:
        while True:
            over = dir.done.exists()
            for title, text in reader.read(rest=over):
                shown.print(title, text)
            if over:
                time.sleep(1.2)  # what the last leg wrote is mirrored by now
                for title, text in reader.read(rest=True):
                    shown.print(title, text)
                seen = look(desk, [dir])[0]
                say(f"the run is {seen.run.state}: {reason(seen)}")
                return
            if time.monotonic() - asked > _ASK_EVERY:
                asked = time.monotonic()
                words = reason(look(desk, [dir])[0])
                if words != said:
                    say(f"… {words}")
                    said = words
            time.sleep(_TICK)
    except KeyboardInterrupt:
        say("\nno longer following; the run goes on")
        raise
