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
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="Run folders, of unmanaged runs or of jobs.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep sending what is new, until Ctrl-C.")] = False,
    json: JsonOption = False,
) -> None:
    """Send run folders to a tracker on another machine.

    The settings, or ONWARD_TRACKER_URL and ONWARD_TOKEN_FILE, name it. What it already has is skipped.
    """
    from onward.errors import HostUnreachable
    from onward.operations.context import OperationsContext
    from onward.operations.tracker_access.server import sync_folder as send

    context = OperationsContext(env=os.environ)
    while True:
        try:
            for folder in folders:
                done = send(context, folder)
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
