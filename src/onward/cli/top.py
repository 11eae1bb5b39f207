"""`onward top`: runs, charts, logs, queue and nodes in a terminal."""

from __future__ import annotations

import os
import sys
import threading
from typing import Annotated

import typer

from onward.cli.desk import open_desk
from onward.cli.render import out, say


def top(
    folders: Annotated[bool, typer.Option("--folders", help="Read the run folders, whatever server there is.")] = False,
) -> None:
    """Watch runs in the terminal: charts, logs, queue, nodes. ? lists the keys."""
    from onward.errors import InvalidInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("onward top needs a terminal", hint="onward runs, show, logs and cluster print the same to a pipe")
    from onward.operations.watching.repair import keep_repairing
    from onward.tui.app import Top
    from onward.tui.choose import open_source
    from onward.tui.folders import Folders

    for name in ("COLUMNS", "LINES"):  # a size that a shell exported stays as it was when the terminal is resized
        os.environ.pop(name, None)
    desk, closed = open_desk(), threading.Event()
    source = open_source(desk, folders=folders)
    if isinstance(source, Folders):  # a server tends by itself
        threading.Thread(target=keep_repairing, args=(open_desk(), closed), daemon=True).start()
    try:
        links = Top(source).run(mouse=False)
    finally:
        closed.set()
        source.close()
    for link in dict.fromkeys(links or ()):
        out(link)
    if links:
        say("  → a browser that is not logged in yet: onward token login")
