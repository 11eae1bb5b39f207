"""`onward top`: runs, charts, logs, queue and nodes in a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from onward.cli.desk import open_desk, repairing
from onward.cli.render import out, say


def top(
    folders: Annotated[bool, typer.Option("--folders", help="Read the run folders, whatever server there is.")] = False,
) -> None:
    """Watch runs in the terminal: charts, logs, queue, nodes. ? lists the keys."""
    from onward.errors import InvalidInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("onward top needs a terminal", hint="onward runs, show, logs and cluster print the same to a pipe")
    from onward.tui.app import Top
    from onward.tui.choose import open_source
    from onward.tui.folders import Folders

    for name in ("COLUMNS", "LINES"):  # a size that a shell exported stays as it was when the terminal is resized
        os.environ.pop(name, None)
    source = open_source(open_desk(), folders=folders)
    try:
        with repairing() if isinstance(source, Folders) else nullcontext():  # a server tends by itself
            links = Top(source).run(mouse=False)
    finally:
        source.close()
    for link in dict.fromkeys(links or ()):
        out(link)
    if links:
        say("  → a browser that is not logged in yet: onward token login")
