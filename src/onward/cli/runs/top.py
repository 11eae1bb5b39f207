"""`onward top`: runs, charts, logs, queue and nodes in a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from onward.cli.context import open_context, repair_while_open
from onward.cli.output import to_stderr, to_stdout


def top(
    folders: Annotated[bool, typer.Option("--folders", help="Read the run folders even if there is a server.")] = False,
) -> None:
    """Watch runs in the terminal: charts, logs, queue, nodes. ? lists the keys."""
    from onward.errors import InvalidInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("onward top needs a terminal", hint="onward runs, show, logs and cluster print the same without one")
    from onward.tui.app import TopApp
    from onward.tui.sources.choice import open_source
    from onward.tui.sources.run_folders import FolderSource

    for name in ("COLUMNS", "LINES"):  # a size that a shell exported stays as it was when the terminal is resized
        os.environ.pop(name, None)
    source = open_source(open_context(), folders=folders)
    try:
        with repair_while_open() if isinstance(source, FolderSource) else nullcontext():  # a server tends by itself
            app = TopApp(source)
            links = app.run(mouse=False)
    finally:
        source.close()
    for link in dict.fromkeys(links or ()):
        to_stdout(link)
    if links:
        to_stderr("  → if your browser is not logged in yet: onward token login")
    raise typer.Exit(app.return_code or 0)
