"""`onward pipeline run`, and what one may ask of a pipeline that is there: show, list, attach, cancel, rerun."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from onward.cli.context import JsonOption, current_folder, open_context, repair_seen_runs, repair_while_open
from onward.cli.output import age_text, bold, coloured, field, json_to_stdout, progress_words, table, to_stderr, to_stdout
from onward.cli.pipelines.plan import ClusterOption, FileArgument, SetOption, variables
from onward.model.quantity import duration_text

PipelineArgument = Annotated[
    str, typer.Argument(metavar="PIPELINE", help="A pipeline: its folder, the folder's name, or its name (the newest of that name).")
]
_FAILED_SHOWN = 10


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("list")(list_)
    app.command("show")(show)
    app.command("attach")(attach)
    app.command("cancel")(cancel)
    app.command("rerun")(rerun)


def run(
    file: FileArgument,
    set: SetOption = None,
    cluster: ClusterOption = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="Run this stage and all that need it, changed or not.", show_default=False),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Watch it until it is over. Closing the terminal does not stop it.")] = False,
    json: JsonOption = False,
) -> None:
    """Start a pipeline: check and freeze everything, then queue the stages that need no other stage."""
    from onward.inputs.pipeline.file import read_pipeline
    from onward.inputs.yaml_lines import read_text
    from onward.model.pipelines.plan import on_cluster
    from onward.operations.pipelines.record import pipeline_record
    from onward.operations.pipelines.start import from_stage, start_pipeline

    context = open_context()
    read = read_pipeline(file, folder=current_folder(), given=variables(set), programs=context.env.get("PATH", ""))
    plan = on_cluster(read.plan, cluster) if cluster else read.plan
    dir = start_pipeline(context, from_stage(plan, from_) if from_ else plan, source=read_text(file), cwd=current_folder())
    for note in read.notes:
        to_stderr(f"onward: {note}")
    record = pipeline_record(context, dir)
    if json:
        json_to_stdout(record)
    else:
        to_stdout(dir.path.name)
        skipped = [stage["label"] for stage in record["stages"] if stage["skipped"]]
        to_stderr(f"{record['name']}: {record['stages_all']} stages on {record['cluster']}; folder {dir.path}")
        if skipped:
            to_stderr(f"  unchanged, not run again: {', '.join(skipped)}")
        to_stderr(f"  onward pipeline attach {dir.path.name}    onward pipeline show {dir.path.name}")
    if wait:
        _follow(str(dir.path), quiet=json)


def list_(json: JsonOption = False) -> None:
    """List pipelines, newest last."""
    from onward.operations.pipelines.record import pipeline_lines
    from onward.operations.remembered_roots import roots_text
    from onward.rundir.pipeline.layout import pipelines_under

    roots = open_context().roots
    lines, damaged = pipeline_lines(dir for root in roots for dir in pipelines_under(root))
    for error in damaged:
        to_stderr(f"onward: {error.message}")
    if json:
        json_to_stdout({"schema": 1, "pipelines": lines, "roots": list(map(str, roots))})
    elif lines:
        table(
            ("PIPELINE", "STATE", "STAGES", "TASKS", "MADE", "WHY"),
            [(Path(one["folder"]).name, one["state"], _stages(one), _tasks(one), age_text(one["created"]), one["cause"]) for one in lines],
            state_columns=(1,),
        )
    else:
        to_stderr(f"no pipelines under {roots_text(list(map(str, roots)))}; onward pipeline run FILE makes one")
    repair_seen_runs()


def show(pipeline: PipelineArgument, json: JsonOption = False) -> None:
    """Show the state of a pipeline and its cause."""
    record = _look(pipeline)
    if json:
        json_to_stdout(record)
    else:
        _print(record)
    repair_seen_runs()


def _print(record: dict[str, Any]) -> None:
    for text in _lines(record):
        to_stdout(text)
    for stage in record["stages"]:
        if stage["state"] == "failed" and stage["evidence"]:
            to_stdout(f"{coloured('failed')}  {stage['label']}")
            field("output", stage["evidence"])
    for one in record["failed_tasks"][:_FAILED_SHOWN]:
        to_stdout(f"{coloured('failed')}  {one['id']}")
        field("why", one["reason"])
        if one["evidence"]:
            field("output", one["evidence"])
        if one["hint"]:
            field("next", one["hint"])
    for problem in (record["upload"] or {}).get("problems", ()):
        to_stdout(f"{coloured('failed')}  upload")
        field("why", problem)
        field("next", "onward tend retries, less and less often")
    if record["failed_tasks"] or record["state"] in ("failed", "cancelled"):
        to_stdout(f"run again what failed: onward pipeline rerun {Path(record['folder']).name} --failed-only")


def attach(pipeline: PipelineArgument) -> None:
    """Watch a pipeline until it is over. Ctrl-C or closing the terminal does not stop the pipeline."""
    _follow(pipeline)


def cancel(pipeline: PipelineArgument) -> None:
    """Cancel a pipeline and its runs."""
    from onward.operations.pipelines.control import cancel_pipeline, find_pipeline

    context = open_context()
    dir = find_pipeline(context, pipeline)
    cancel_pipeline(context, dir)
    to_stderr(f"{dir.path.name} is cancelled; onward pipeline rerun {dir.path.name} --failed-only continues it")


def rerun(
    pipeline: PipelineArgument,
    failed_only: Annotated[bool, typer.Option("--failed-only", help="Only what failed or was cancelled.")] = False,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="A new pipeline of the same code, from this stage on.", show_default=False),
    ] = None,
) -> None:
    """Run again what failed, down to single items of a benchmark, or everything from a stage on."""
    from onward.errors import InvalidInput
    from onward.operations.pipelines.control import find_pipeline, restart_from_stage, retry_failed

    if failed_only == (from_ is not None):
        said = "--failed-only and --from exclude each other" if failed_only else "nothing says what to run again"
        raise InvalidInput(said, hint="--failed-only, or --from STAGE")
    context = open_context()
    dir = find_pipeline(context, pipeline)
    if from_:
        new = restart_from_stage(context, dir, from_)
        to_stdout(new.path.name)
        to_stderr(f"{new.path.name} starts at {from_}; earlier stages are taken from {dir.path.name}")
        return
    names = retry_failed(context, dir)
    to_stderr(f"{dir.path.name} continues" + (f"; running again:  {', '.join(names)}" if names else ""))


# ── how it looks ──────────────────────────────────────────────────────────────


def _look(pipeline: str) -> dict[str, Any]:
    from onward.operations.pipelines.control import find_pipeline
    from onward.operations.pipelines.record import pipeline_record

    context = open_context()
    return pipeline_record(context, find_pipeline(context, pipeline))


def _lines(record: dict[str, Any]) -> list[str]:
    lasted = duration_text((record["ended"] or time.time()) - record["created"])
    lines = [f"{bold(record['name'])}  {coloured(record['state'])}  on {record['cluster']}, {lasted}  {record['folder']}"]
    if record["cause"]:
        lines.append(f"  {record['cause']}")
    width = max((len(stage["label"]) for stage in record["stages"]), default=0)
    for stage in record["stages"]:
        state = "skipped" if stage["skipped"] else stage["state"]
        words = progress_words(stage["progress"]) if state == "live" and (stage["progress"] or {}).get("step") is not None else stage["why"]
        lines.append(f"  {stage['label'].ljust(width)}  {coloured(state.ljust(9), state)}  {stage['run'] or '–':<8}  {words}".rstrip())
    if sum(record["tasks"].values()):
        lines.append(f"  tasks: {_tasks(record)}; workers: {record['workers_live']} running, {len(record['workers'])} in total")
    if upload := record["upload"]:
        left = f", {upload['waiting']} waiting" if upload["waiting"] else ""
        lines.append(f"  uploaded to {upload['to']}: {upload['arrived']}{left}")
    return lines


def _stages(record: dict[str, Any]) -> str:
    return f"{record['stages_done']}/{record['stages_all']}"


def _tasks(record: dict[str, Any]) -> str:
    tasks = record["tasks"]
    words = [f"{tasks['done']} of {sum(tasks.values())} done"]
    words += [f"{tasks[state]} {word}" for state, word in (("claimed", "running"), ("failed", "failed")) if tasks[state]]
    return ", ".join(words) if sum(tasks.values()) else "–"


def _follow(pipeline: str, *, quiet: bool = False) -> None:
    """Exit code 7 where it did not finish, as for an awaited run."""
    with repair_while_open():
        record = _watch(pipeline, quiet=quiet)
    if record["state"] != "finished":
        raise typer.Exit(7)


def _watch(pipeline: str, *, quiet: bool) -> dict[str, Any]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    record = _look(pipeline)
    if not quiet:
        with Live(console=Console(highlight=False), auto_refresh=False, transient=True) as live:
            while record["state"] == "running":
                live.update(Text.from_ansi("\n".join(_lines(record))), refresh=True)
                time.sleep(1.0)
                record = _look(pipeline)
        for text in _lines(record):
            to_stdout(text)
    while record["state"] == "running":
        time.sleep(1.0)
        record = _look(pipeline)
    return record
