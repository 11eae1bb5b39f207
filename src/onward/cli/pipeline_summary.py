"""`onward pipeline summary`: what the benchmarks say, as a table, a page, or an exit code."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import out, out_json, safe, say, table

if TYPE_CHECKING:
    from onward.operations.wiring import Desk
    from onward.pipelines.summary_compare import Differences
    from onward.pipelines.summary_table import Summary
    from onward.rundir.pipeline_layout import PipelineDir

_WATCH_SECONDS = 2.0


class Format(StrEnum):
    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def register(app: typer.Typer) -> None:
    app.command("summary")(summary)


def summary(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="PIPELINE", help="A pipeline: its folder or the folder's name, or its name.", show_default=False)
    ] = None,
    format: Annotated[Format, typer.Option("--format", "-f", help="How it is written.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.", show_default=False)] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="Hold the others against this stage, model or STAGE@STEP.", show_default=False),
    ] = None,
    gate: Annotated[bool, typer.Option("--gate", help="Exit with 7 where a gate is not passed.")] = False,
    compare: Annotated[
        tuple[str, str] | None, typer.Option("--compare", metavar="A B", help="Two pipelines: B less A.", show_default=False)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show it anew as tasks end, until the pipeline is over.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what the benchmarks of a pipeline say so far: means with their 95 % intervals, the best, what differs from the baseline."""
    from onward.errors import InvalidInput
    from onward.operations.pipeline_acts import find_pipeline
    from onward.operations.pipeline_summary import summary_of

    desk, how = open_desk(), Format.JSON if json else format
    if (pipeline is None) == (compare is None):
        raise InvalidInput("name one pipeline, or two by --compare A B", hint="`onward pipeline list` lists them")
    if compare:
        _compare(desk, compare, how, output)
        return
    assert pipeline is not None
    dir = find_pipeline(desk, pipeline)
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

    from onward.operations.pipeline_summary import summary_of
    from onward.pipelines.summary_text import heads, lines

    with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
        while not dir.over.exists():
            found = summary_of(dir, baseline=baseline)
            drawn = Table(box=None)
            for head in ("", *heads(found)):
                drawn.add_column(Text(head))
            for line in lines(found):
                drawn.add_row(*(Text(safe(word)) for word in line))
            live.update(drawn, refresh=True)
            time.sleep(_WATCH_SECONDS)


def _rendered(found: Summary, how: Format) -> str | None:
    """None: a table for the terminal."""
    from json import dumps

    from onward.operations.summary_page import summary_page
    from onward.pipelines.summary_text import as_csv, as_json, markdown

    match how:
        case Format.TEXT:
            return None
        case Format.MARKDOWN:
            return markdown(found)
        case Format.CSV:
            return as_csv(found)
        case Format.JSON:
            return dumps(as_json(found), indent=2) + "\n"
        case Format.HTML:
            return summary_page(found, now=time.time())


def _write(text: str | None, found: Summary, output: Path | None) -> None:
    from onward.pipelines.summary_text import heads, legend, lines, markdown

    if text is None and output is None:
        if found.rows:
            table(("", *heads(found), ""), [(*line, "") for line in lines(found)])  # the last column would be cut
            out("")
        else:
            say("nothing is benchmarked yet")
        for line in legend(found):
            say(line)
        return
    _save(text if text is not None else markdown(found), output)


def _save(text: str, output: Path | None) -> None:
    from onward.errors import StorageError
    from onward.sdk.files import write_whole

    if output is None or str(output) == "-":
        out(text.rstrip("\n"))
        return
    try:
        write_whole(output, text)
    except OSError as error:
        raise StorageError(f"{output} cannot be written: {error.strerror}", hint="choose another place by -o") from error
    say(f"written to {output}")


def _gate(dir: PipelineDir, found: Summary) -> None:
    from onward.errors import GateFailed
    from onward.pipelines.summary_gate import check_gates
    from onward.supervisor.advance import read_plan

    missed = check_gates(found, read_plan(dir).summary.gates)
    if missed:
        raise GateFailed("; ".join(missed), hint="`onward pipeline summary` has the whole table")
    say("all gates are passed")


def _compare(desk: Desk, names: tuple[str, str], how: Format, output: Path | None) -> None:
    from json import dumps

    from onward.errors import InvalidInput
    from onward.operations.pipeline_acts import find_pipeline
    from onward.operations.pipeline_summary import summary_of
    from onward.pipelines.summary_compare import differences
    from onward.pipelines.summary_text import differences_json, differences_markdown

    first, second = (find_pipeline(desk, name) for name in names)
    found = differences(summary_of(first), summary_of(second))
    match how:
        case Format.TEXT if output is None:
            _show_differences(found, (first.path.name, second.path.name))
        case Format.TEXT | Format.MARKDOWN:
            _save(differences_markdown(found), output)
        case Format.JSON if output is None:
            out_json(differences_json(found))
        case Format.JSON:
            _save(dumps(differences_json(found), indent=2) + "\n", output)
        case _:
            raise InvalidInput(f"two pipelines are not compared as {how}", hint="take text, markdown or json")


def _show_differences(found: Differences, names: tuple[str, str]) -> None:
    from onward.pipelines.summary_text import difference_lines

    table(("", "BENCHMARK", names[0], names[1], "DIFFERENCE", "P", ""), difference_lines(found))
    for note in found.notes:
        say(note)
