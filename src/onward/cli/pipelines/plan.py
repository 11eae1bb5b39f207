"""`onward pipeline`: a file of stages, trainings and benchmarks. What would be done is shown before anything is."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from onward.cli.context import JsonOption, current_folder, open_context
from onward.cli.output import json_to_stdout, table, to_stderr, to_stdout
from onward.model.quantity import counted

app = typer.Typer(name="pipeline", help="Stages, trainings and benchmarks from one file.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The pipeline file.", show_default=False)]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a variable of the file.", show_default=False)]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Use this cluster instead of the file's.", show_default=False)
]


@app.command("plan")
def plan(file: FileArgument, set: SetOption = None, cluster: ClusterOption = None, json: JsonOption = False) -> None:
    """Show what a file would do, and queue nothing.

    Its graph, jobs, resources and node-hours, and which stages are done already.
    """
    from onward.inputs.pipeline.file import read_pipeline
    from onward.inputs.pipeline.outline import outline
    from onward.model.pipelines.plan import on_cluster
    from onward.operations.pipelines.start import mark_done_stages

    context = open_context()
    read = read_pipeline(file, folder=current_folder(), given=variables(set), programs=context.env.get("PATH", ""))
    made = on_cluster(read.plan, cluster) if cluster else read.plan
    outlined = outline(
        mark_done_stages(context, made), lambda draft: context.settings.cluster(draft.cluster)[1].with_defaults(draft.resources)
    )
    for note in read.notes:
        to_stderr(f"note: {note}")
    if json:
        json_to_stdout(outlined)
    else:
        _show(outlined)


@app.command("convert")
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A params.yaml of graph2tac's old pipeline.", show_default=False)],
    folder: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="Write pipeline.yaml and the files it refers to here.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Convert a file of graph2tac's old pipeline.

    Prints the pipeline. Notes, and what could not be converted, go to stderr.
    """
    from onward.inputs.pipeline.converter import convert_pipeline

    made = convert_pipeline(file)
    for note in made.notes:
        to_stderr(f"note: {note}")
    if folder is None:
        to_stdout(made.text.rstrip("\n"))
        to_stderr(f"it refers to {', '.join(made.files)}: -o FOLDER writes them too")
        return
    _write(folder, {"pipeline.yaml": made.text, **made.files})
    to_stderr("commands start in the folder where a pipeline is started; see what it would do:")
    to_stderr(f"  cd {shlex.quote(str(folder))} && onward pipeline plan pipeline.yaml")


def _write(folder: Path, files: dict[str, str]) -> None:
    from onward.errors import InvalidInput

    if there := [name for name in files if (folder / name).exists()]:
        raise InvalidInput(f"{folder} already has {', '.join(there)}", hint="use another folder, or remove them")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def variables(texts: list[str] | None) -> dict[str, Any]:
    from onward.inputs.params.flags import name_value_pairs
    from onward.inputs.yaml_lines import parse_scalar

    return {name: parse_scalar(value) for name, value in name_value_pairs("--set", texts or ())}


def _show(outlined: dict[str, Any]) -> None:
    to_stdout(f"{outlined['name']} on {outlined['cluster']}")
    to_stdout("")
    if outlined["stages"]:
        rows = [(one["name"], ", ".join(one["needs"]) or "–", _hours(one), one["asks"], one["point"]) for one in outlined["stages"]]
        table(("STAGE", "AFTER", "NODE-HOURS", "RESOURCES", "POINT"), rows)
    if outlined["benchmarks"]:
        to_stdout("")
        rows = [
            (one["name"], _several(one["of"]), one["checkpoints"], str(one["tasks_a_checkpoint"]), one["pool"])
            for one in outlined["benchmarks"]
        ]
        table(("BENCHMARK", "OF", "CHECKPOINTS", "TASKS EACH", "WORKERS"), rows)
        to_stdout("")
        workers = [(one["name"], ", ".join(one["needs"]) or "–", _number(one["node_hours"]), one["asks"]) for one in outlined["pools"]]
        table(("WORKERS", "AFTER", "NODE-HOURS", "RESOURCES"), workers)
    to_stdout("")
    for line in _total(outlined):
        to_stdout(line)


def _total(outlined: dict[str, Any]) -> list[str]:
    hours, lines = outlined["node_hours"], []
    if outlined["stages"]:
        most = f", {_number(hours['stages_at_most'])} at most" if not hours["unbounded"] else ""
        skipped = [one["name"] for one in outlined["stages"] if one["skipped_by"]]
        lines += [f"unchanged, not run again: {_several(skipped)}"] if skipped else []
        lines.append(
            f"{len(outlined['stages']) - len(skipped)} runs: {_number(hours['stages_a_leg_each'])} node-hours at one leg each{most}"
        )
    if hours["unbounded"]:
        lines.append(f"no upper bound: {_several(hours['unbounded'])} without total-time or max-legs")
    if outlined["benchmarks"]:
        each = f"{_number(hours['workers_a_leg_each'])} node-hours at one leg each"
        tasks = f"the tasks of {counted(len(outlined['benchmarks']), 'benchmark')}"
        lines.append(f"at most {outlined['workers']['max_running']} workers at a time for {tasks}: {each}")
    if outlined["upload"]:
        lines.append(f"{', '.join(outlined['upload']['what'])} will be uploaded to {outlined['upload']['to']}")
    return lines


def _hours(stage: dict[str, Any]) -> str:
    hours = stage["node_hours"]
    if stage["skipped_by"]:
        return "0, already done"
    if hours["at_most"] is None or hours["at_most"] == hours["a_leg"]:
        return f"{_number(hours['a_leg'])}{'' if hours['at_most'] is not None else ' per leg'}"
    return f"{_number(hours['a_leg'])} per leg, {_number(hours['at_most'])} at most"


def _several(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]} ({len(names)})"


def _number(hours: float | None) -> str:
    """A question mark where nobody said a time: the cluster's own limit holds then."""
    return "?" if hours is None else f"{hours:.4g}"
