"""`onward backup`: a copy of the tracker; its server may run meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from onward.cli.context import JsonOption
from onward.cli.output import json_to_stdout, to_stdout
from onward.cli.server.tokens import DbOption


def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    db: DbOption = None,
    files: Annotated[
        str | None, typer.Option("--files", metavar="FOLDER", help="Where uploads are, if the server runs with --files.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Copy the tracker; its server may run meanwhile."""
    from onward.model.quantity import format_bytes
    from onward.operations.tracker_access.backup import backup as copy
    from onward.operations.tracker_access.location import tracker_location

    done = copy(tracker_location(os.environ, db, files), folder)
    if json:
        json_to_stdout(done)
    else:
        to_stdout(f"{done['folder']}: {done['database']['name']} {format_bytes(done['database']['bytes'])}, {done['files']['count']} files")
