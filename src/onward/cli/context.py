"""The desk a verb works from, made from the process's environment when the verb runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from onward.operations.context import OperationsContext
    from onward.operations.hosts.all_hosts import Hosts, LocatedRun

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run: its id or the first characters of it, its name, or its folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, with a schema version.")]


class RunCommand(TyperCommand):
    """A verb on one run: without a run, it says how to find one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if getattr(error.param, "name", None) == "run" and not error.message:
                error.message = "`onward runs` lists the runs; name one by its id, name or folder"
            raise


def open_context() -> OperationsContext:
    """This machine only."""
    from onward.operations.context import OperationsContext

    return OperationsContext(env=dict(os.environ))


def open_hosts() -> Hosts:
    """This machine, and the hosts that the settings name."""
    from onward.cli.output import to_stderr
    from onward.operations.hosts.all_hosts import Hosts

    return Hosts(open_context(), to_stderr)


def repair_seen_runs() -> None:
    """The last step of a verb that read runs of this machine: repair those that lost their jobs."""
    from onward.cli.output import to_stderr
    from onward.operations.repair.after_look import repair_after_look

    sys.stdout.flush()  # whoever reads it need not wait
    for words in repair_after_look(open_context()):
        to_stderr(f"repaired: {words}")


@contextmanager
def repair_while_open() -> Iterator[None]:
    """The same again and again, without output, while a verb waits for runs of this machine or shows them."""
    from onward.operations.repair.after_look import keep_repairing

    stopped = threading.Event()
    threading.Thread(target=keep_repairing, args=(open_context(), stopped), name="repair", daemon=True).start()
    try:
        yield
    finally:
        stopped.set()


def current_folder() -> Path:
    """The current folder."""
    from onward.errors import InvalidInput

    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InvalidInput("the current folder no longer exists", hint="cd to one that exists") from error


def locate_run(text: str, *, acting: bool = False) -> LocatedRun:
    return open_hosts().find(text, acting=acting)


def folder_text(found_host: str | None, folder: str) -> str:
    """A folder as text; one on another machine as HOST:FOLDER, like ssh and scp."""
    return f"{found_host}:{folder}" if found_host else folder
