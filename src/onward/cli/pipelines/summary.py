"""`onward pipeline summary`: what the benchmarks say, as a table, a page, or an exit code."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.context import JsonOption, open_context
from onward.cli.output import json_to_stdout, safe, save, table, to_stderr, to_stdout

if TYPE_CHECKING:
    from onward.inputs.summary.differences import Differences
    from onward.inputs.summary.table import BenchmarkSummary
    from onward.operations.context import OperationsContext
    from onward.rundir.pipeline.layout import PipelineDir

_WATCH_SECONDS = 2.0


class SummaryFormat(StrEnum):
    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def register(app: typer.Typer) -> None:
    app.command("summary")(summary)


def summary(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="PIPELINE", help="A pipeline: its folder, the folder's name, or its name.", show_default=False)
    ] = None,
    format: Annotated[SummaryFormat, typer.Option("--format", "-f", help="Output format.")] = SummaryFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.", show_default=False)] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="Compare the others with this stage, model or STAGE@STEP.", show_default=False),
    ] = None,
    gate: Annotated[bool, typer.Option("--gate", help="Exit with 7 if a gate fails.")] = False,
    compare: Annotated[
        tuple[str, str] | None, typer.Option("--compare", metavar="A B", help="Two pipelines: B minus A.", show_default=False)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh as tasks end, until the pipeline is over.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a pipeline's benchmark results so far: means with 95 % intervals, the best, and what differs from the baseline."""
    from onward.errors import InvalidInput
    from onward.operations.pipelines.control import find_pipeline
    from onward.operations.pipelines.summary import summary_of

    context, how = open_context(), SummaryFormat.JSON if json else format
    if (pipeline is None) == (compare is None):
        raise InvalidInput("name one pipeline, or two with --compare A B", hint="`onward pipeline list` lists them")
    if compare:
        _compare(context, compare, how, output)
        return
    assert pipeline is not None
    dir = find_pipeline(context, pipeline)
    if watch:
        _watch(dir, baseline)
    found = summary_of(dir, baseline=baseline)
    _write(_rendered(found, how), found, output)
    if gate:
        _gate(dir, found)


def _watch(dir: PipelineDir, baseline: str | None) -> None:
    """On stderr, until the pipeline is over: what is printed then is the summary as it was asked for."""
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from onward.inputs.summary.text import column_headings, table_lines
    from onward.operations.pipelines.summary import summary_of

    with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
        while not dir.over.exists():
            found = summary_of(dir, baseline=baseline)
            drawn = Table(box=None)
            for head in ("", *column_headings(found)):
                drawn.add_column(Text(head))
            for line in table_lines(found):
                drawn.add_row(*(Text(safe(word)) for word in line))
            live.update(drawn, refresh=True)
            time.sleep(_WATCH_SECONDS)


def _rendered(found: BenchmarkSummary, how: SummaryFormat) -> str | None:
    """None: a table for the terminal."""
    from json import dumps

    from onward.inputs.summary.text import as_csv, as_json, markdown
    from onward.operations.reports.summary_page import summary_page

    match how:
        case SummaryFormat.TEXT:
            return None
        case SummaryFormat.MARKDOWN:
            return markdown(found)
        case SummaryFormat.CSV:
            return as_csv(found)
        case SummaryFormat.JSON:
            return dumps(as_json(found), indent=2) + "\n"
        case SummaryFormat.HTML:
            return summary_page(found, now=time.time())


def _write(text: str | None, found: BenchmarkSummary, output: Path | None) -> None:
    from onward.inputs.summary.text import column_headings, legend, markdown, table_lines

    if text is None and output is None:
        if found.rows:
            table(("", *column_headings(found), ""), [(*line, "") for line in table_lines(found)])  # the last column would be cut
            to_stdout("")
        else:
            to_stderr("no benchmark has results yet")
        for line in legend(found):
            to_stderr(line)
        return
    _save(text if text is not None else markdown(found), output)


def _save(text: str, output: Path | None) -> None:
    if save(text, output):
        to_stderr(f"written to {output}")


def _gate(dir: PipelineDir, found: BenchmarkSummary) -> None:
    from onward.errors import GateFailed
    from onward.inputs.summary.gates import check_gates
    from onward.pipelines.advance import read_plan

    missed = check_gates(found, read_plan(dir).summary.gates)
    if missed:
        raise GateFailed("; ".join(missed), hint="`onward pipeline summary` shows the whole table")
    to_stderr("all gates passed")


def _compare(context: OperationsContext, names: tuple[str, str], how: SummaryFormat, output: Path | None) -> None:
    from json import dumps

    from onward.errors import InvalidInput
    from onward.inputs.summary.differences import differences
    from onward.inputs.summary.text import differences_json, differences_markdown
    from onward.operations.pipelines.control import find_pipeline
    from onward.operations.pipelines.summary import summary_of

    first, second = (find_pipeline(context, name) for name in names)
    found = differences(summary_of(first), summary_of(second))
    match how:
        case SummaryFormat.TEXT if output is None:
            _show_differences(found, (first.path.name, second.path.name))
        case SummaryFormat.TEXT | SummaryFormat.MARKDOWN:
            _save(differences_markdown(found), output)
        case SummaryFormat.JSON if output is None:
            json_to_stdout(differences_json(found))
        case SummaryFormat.JSON:
            _save(dumps(differences_json(found), indent=2) + "\n", output)
        case _:
            raise InvalidInput(f"a comparison of two pipelines cannot be written as {how}", hint="use text, markdown or json")


def _show_differences(found: Differences, names: tuple[str, str]) -> None:
    from onward.inputs.summary.text import difference_lines

    table(("", "BENCHMARK", names[0], names[1], "DIFFERENCE", "P", ""), difference_lines(found))
    for note in found.notes:
        to_stderr(note)
