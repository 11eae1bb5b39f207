"""The desk a verb works from, made from the process's environment when the verb runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from onward.operations.wiring import Desk
    from onward.rundir.layout import RunDir

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run: its id (or the beginning of it), its name or its folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, with a schema version.")]


def open_desk() -> Desk:
    from onward.operations.wiring import Desk

    return Desk(env=dict(os.environ))


def here() -> Path:
    """The folder a command starts in."""
    from onward.errors import InvalidInput

    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InvalidInput("the folder you are in is no longer there", hint="cd to one that is") from error


def open_run(desk: Desk, text: str) -> RunDir:
    from onward.operations.find import find_run

    return find_run(desk, text)
