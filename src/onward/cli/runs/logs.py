"""`onward logs`: what a run printed, leg after leg; with -f as it comes, also before the first leg has started."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from onward.cli.context import RunArgument, locate_run, repair_seen_runs
from onward.cli.output import safe, to_stderr, to_stdout


def logs(
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the output through all legs, until the run is over.")] = False,
    leg: Annotated[int | None, typer.Option("--leg", min=1, help="Only this leg.", show_default=False)] = None,
    err: Annotated[bool, typer.Option("--err", help="Only stderr.")] = False,
    stdout: Annotated[bool, typer.Option("--out", help="Only stdout.")] = False,
    supervisor: Annotated[bool, typer.Option("--supervisor", help="The supervisor's log instead.")] = False,
    lines: Annotated[int | None, typer.Option("--lines", "-n", min=0, help="Only the last N lines.", show_default=False)] = None,
) -> None:
    """Print a run's output."""
    found = locate_run(run)
    streams = [name for name, wanted in (("out", stdout or not err), ("err", err or not stdout)) if wanted]
    shown = _Printer()
    pieces = found.host.logs(run=found.run, streams=streams, leg=leg, supervisor=supervisor, lines=lines, follow=follow)
    try:
        for piece in pieces:
            shown.print(piece)
    except KeyboardInterrupt:
        if follow:
            to_stderr("\nno longer following; the run continues")
        raise
    if not follow and shown.title is None and lines != 0:
        which = f"leg {leg}" if leg else "the run"
        to_stderr(f"{which} printed nothing" if shown.done else f"{which} has printed nothing yet; -f waits for it")
    if found.host.hostname is None and not follow:
        repair_seen_runs()


class _Printer:
    def __init__(self) -> None:
        self.title: str | None = None
        self.done = False  # the run is over

    def print(self, piece: dict[str, Any]) -> None:
        for title, text in piece.get("lines", ()):
            if title != self.title:
                to_stderr(f"── {title} " + "─" * max(2, 60 - len(title)))
                self.title = title
            to_stdout(safe(text))
        if piece.get("lines"):
            sys.stdout.flush()
        if "words" in piece:
            to_stderr(f"… {piece['words']}")
        if "over" in piece:
            to_stderr(piece["over"])
        self.done = piece.get("done", self.done)
