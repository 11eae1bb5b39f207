"""`onward fetch`: copy a run's results to a folder here."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onward.cli.context import JsonOption, RunArgument, locate_run
from onward.cli.output import json_to_stdout, safe, to_stderr, to_stdout

if TYPE_CHECKING:
    from onward.operations.fetch.result_files import RunFile
    from onward.operations.fetch.transfer import FetchPlan

_EVERY_ON_A_TERMINAL, _EVERY = 0.5, 30.0  # seconds between words on how far it is


def fetch(
    run: RunArgument,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Only these files, folders or patterns, named as `show` does.", show_default=False),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Copy to this folder, instead of ./<run folder's name>.", show_default=False)
    ] = None,
    checkpoints: Annotated[
        str | None, typer.Option("--checkpoints", metavar="newest|all|STEP", help="Fetch these checkpoints as well.", show_default=False)
    ] = None,
    logs: Annotated[bool, typer.Option("--logs", help="Only the logs (and the checkpoints of --checkpoints).")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Copy nothing; list the files and their sizes.")] = False,
    json: JsonOption = False,
) -> None:
    """Copy a run's results to a folder here."""
    from onward.errors import InvalidInput
    from onward.operations.fetch.transfer import fetch as copy
    from onward.operations.fetch.transfer import plan_fetch

    if checkpoints not in (None, "newest", "all") and not (checkpoints or "").isdecimal():
        raise InvalidInput(f"--checkpoints {checkpoints} is not newest, all or a step", hint="`onward checkpoints RUN` lists them")
    found = locate_run(run)
    plan = plan_fetch(found, paths or (), to=to, checkpoints=checkpoints, logs=logs)
    to_stderr(_summary(plan, dry_run=dry_run))
    for note in plan.notes:
        to_stderr(f"  note: {safe(note)}")
    problems: dict[str, str] = {}
    if not dry_run and plan.to_copy:
        progress = _Progress(plan)
        try:
            done = copy(found, plan, progress)
        finally:
            progress.end()
        problems = done.problems
        for path, why in problems.items():
            to_stderr(f"not fetched: {safe(path)}: {why}")
    if json:
        copied = "to fetch" if dry_run else "fetched"
        states = (
            {file.path: copied for file in plan.to_copy} | {file.path: "here" for file in plan.here} | dict.fromkeys(problems, "failed")
        )
        json_to_stdout(_body(plan, states, problems))
    elif dry_run:
        _list(plan)
    else:
        to_stdout(str(plan.folder.path))
    if problems:
        raise typer.Exit(1)


def _summary(plan: FetchPlan, *, dry_run: bool) -> str:
    from onward.model.quantity import counted, format_bytes

    here = f"; {counted(len(plan.here), 'file')} ({format_bytes(_size(plan.here))}) already there" if plan.here else ""
    if not plan.to_copy:
        return f"nothing new to fetch to {plan.folder.path}{here}"
    what = f"{counted(len(plan.to_copy), 'file')} ({format_bytes(_size(plan.to_copy))}) to {plan.folder.path}{here}"
    return f"would fetch {what}" if dry_run else f"fetching {what}"


def _list(plan: FetchPlan) -> None:
    from onward.model.quantity import format_bytes

    for file in plan.to_copy:
        to_stdout(f"{format_bytes(file.size):>10}  {safe(file.path)}")


def _body(plan: FetchPlan, states: dict[str, str], problems: dict[str, str]) -> dict[str, Any]:
    files = sorted((*plan.to_copy, *plan.here), key=lambda file: file.path)
    listed = [
        {"path": file.path, "bytes": file.size, "kind": file.kind, "state": states[file.path], "problem": problems.get(file.path)}
        for file in files
    ]
    return {"schema": 1, "to": str(plan.folder.path), "bytes": _size(files), "files": listed, "notes": plan.notes}


def _size(files: list[RunFile]) -> int:
    return sum(file.size for file in files)


class _Progress:
    """On a terminal a line that is written over; elsewhere a line now and then."""

    def __init__(self, plan: FetchPlan) -> None:
        self._files, self._bytes = len(plan.to_copy), _size(plan.to_copy)
        self._files_done = self._bytes_done = 0
        self._terminal = sys.stderr.isatty()
        self._said = time.monotonic()
        self._shown = False

    def bytes(self, count: int) -> None:
        self._bytes_done += count
        self._say()

    def done(self, file: RunFile) -> None:
        self._files_done += 1
        self._say()

    def _say(self) -> None:
        from onward.model.quantity import format_bytes

        now = time.monotonic()
        if now - self._said < (_EVERY_ON_A_TERMINAL if self._terminal else _EVERY):
            return
        self._said, self._shown = now, True
        words = f"{self._files_done} of {self._files} files, {format_bytes(self._bytes_done)} of {format_bytes(self._bytes)}"
        sys.stderr.write(f"\r\x1b[K{words}" if self._terminal else f"{words}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._terminal and self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
