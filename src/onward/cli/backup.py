"""`onward backup`: a copy of the tracker, while it is at work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from onward.cli.desk import JsonOption
from onward.cli.render import out, out_json
from onward.cli.token import DbOption


def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is not there yet.")],
    db: DbOption = None,
    files: Annotated[str | None, typer.Option("--files", metavar="FOLDER", help="Where the server keeps uploads, if it was told.")] = None,
    json: JsonOption = False,
) -> None:
    """Copy the tracker, while its server is at work."""
    from onward.model.quantity import format_bytes
    from onward.operations.backup import backup as copy
    from onward.operations.tracking import place_of

    done = copy(place_of(os.environ, db, files), folder)
    if json:
        out_json(done)
    else:
        out(f"{done['folder']}: {done['database']['name']} {format_bytes(done['database']['bytes'])}, {done['files']['count']} files")
