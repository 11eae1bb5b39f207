"""`onward sync`: send run folders to a tracker's server that cannot see them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from onward.cli.context import JsonOption
from onward.cli.output import json_to_stdout, to_stdout


def sync(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="Folders of runs, by hand or of jobs.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on sending what is new, until interrupted.")] = False,
    json: JsonOption = False,
) -> None:
    """Send run folders to a tracker elsewhere.

    It is the one that the settings or ONWARD_TRACKER_URL and ONWARD_TOKEN_FILE name. What it has already is passed over.
    """
    from onward.errors import HostUnreachable
    from onward.operations.context import OperationsContext
    from onward.operations.tracker_access.server import sync_folder as send

    desk = OperationsContext(env=os.environ)
    while True:
        try:
            for folder in folders:
                done = send(desk, folder)
                if json:
                    json_to_stdout({"run": done.run_id, "folder": str(folder), "bytes": done.bytes})
                elif done.bytes or not follow:
                    to_stdout(f"{folder}: {done.bytes} bytes sent to run {done.run_id}")
        except HostUnreachable:
            if not follow:
                raise
        if not follow:
            return
        time.sleep(2.0)
