"""`onward report`: runs as one page to hand around."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.context import open_context
from onward.cli.output import save, to_stderr
from onward.model.quantity import counted

if TYPE_CHECKING:
    from onward.operations.context import OperationsContext
    from onward.operations.reports.subjects import ReportSubject
    from onward.rundir.layout import RunDir


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Runs: ids, names or folders.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write; - for stdout.")] = Path("report.html"),
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", metavar="NAME", help="Only this metric; repeat.")] = None,
    title: Annotated[str, typer.Option("--title", help="Its title. Default: the runs' names.")] = "",
    server: Annotated[bool, typer.Option("--server", help="Read from the server even if the folders are here.")] = False,
) -> None:
    """Write runs as one HTML file to share.

    It holds charts, timelines, params that differ and the environment, and needs no network and no scripts.
    Runs with a folder on this machine are read from it, others from the server.
    """
    from onward.operations.reports.run_page import run_page

    context = open_context()
    subjects = _subjects(context, list(dict.fromkeys(runs)), metric or [], server)
    head = title or ", ".join(dict.fromkeys(one.name for one in subjects))[:200]
    text = run_page(subjects, title=head, now=time.time())
    if save(text, output):
        to_stderr(f"{output}: {counted(len(subjects), 'run')}, {len(text) // 1024} KiB; open it in a browser")


def _subjects(context: OperationsContext, runs: list[str], metrics: list[str], server: bool) -> list[ReportSubject]:
    """In the order that was asked for."""
    from onward.errors import NotFound
    from onward.operations.reports.subjects import subjects_from_folders
    from onward.operations.runs.find import find_run

    here: dict[str, RunDir] = {}
    for text in [] if server else runs:
        try:
            here[text] = find_run(context, text)
        except NotFound:
            if not _may_be_elsewhere(text):
                raise
    found = dict(zip(here, subjects_from_folders(list(here.values()), metrics, context.clock) if here else [], strict=True))
    elsewhere = [text for text in runs if text not in found]
    if elsewhere:
        from onward.cli.runs.report_from_server import from_server
        from onward.client import Client

        try:
            client = Client(frame="dicts")
        except NotFound:
            if server:
                raise
            find_run(context, elsewhere[0])  # says that it is not here, and what is like it
            raise
        found |= {text: from_server(client, text, metrics) for text in elsewhere}
    return [found[text] for text in runs]


def _may_be_elsewhere(text: str) -> bool:
    return "/" not in text and text not in (".", "..")
