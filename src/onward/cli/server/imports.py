"""`onward import`: what other tools have written, taken over into the tracker. Works on the database itself, server or not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from onward.cli.context import JsonOption
from onward.cli.output import json_to_stdout, to_stderr, to_stdout
from onward.cli.server.tokens import DbOption
from onward.model.quantity import counted

app = typer.Typer(name="import", help="Import runs that other tools wrote.", no_args_is_help=True)

_MOST_TOLD = 20
ExperimentOption = Annotated[str | None, typer.Option("--experiment", metavar="NAME", help="The experiment for the runs.")]


@app.command("tensorboard")
def tensorboard(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with event files, at any depth.")],
    experiment: ExperimentOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep reading as the files grow, until Ctrl-C.")] = False,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Import TensorBoard event files: each folder that has some becomes a run, recognized by its path."""
    from onward.errors import InvalidInput
    from onward.operations.imports.tensorboard import TensorboardImport, TensorboardImportResult
    from onward.operations.tracker_access.location import open_tracker, tracker_location

    if follow and json:
        raise InvalidInput("--follow and --json exclude each other", hint="leave one of them out")
    with open_tracker(tracker_location(os.environ, db)) as opened:
        taking = TensorboardImport(opened.tracker, folder, experiment=experiment)
        if not follow:
            done = taking.look()
            _tell(done.problems + done.torn)
            if json:
                json_to_stdout({"schema": 1, **vars(done)})
            else:
                to_stdout(f"{done.experiment}: {counted(done.runs, 'run')} ({done.new_runs} new), {counted(done.points, 'new point')}")
            if not done.runs:
                to_stderr(f"  → no event files under {folder}")
            return

        def tell(done: TensorboardImportResult) -> None:
            _tell(done.problems)
            if done.points or done.new_runs:
                to_stdout(f"{done.experiment}: {counted(done.runs, 'run')} ({done.new_runs} new), {counted(done.points, 'new point')}")

        taking.follow(tell)


@app.command("mlflow")
def mlflow(
    address: Annotated[str, typer.Argument(metavar="PATH", help="An mlruns folder, an SQLite file, or sqlite:///… or file:… of one.")],
    experiment: Annotated[
        list[str] | None, typer.Option("--experiment", metavar="NAME", help="Import only this experiment; repeat.")
    ] = None,
    artifacts: Annotated[
        list[Path] | None,
        typer.Option("--artifacts", metavar="FOLDER", help="Where MLflow's server kept files, if not next to the store; repeat."),
    ] = None,
    db: DbOption = None,
    files: Annotated[
        str | None, typer.Option("--files", metavar="FOLDER", help="Where uploads are, if the server runs with --files.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Import an MLflow store: experiments, runs, every point, datasets, models and files. Repeat it to import what is new."""
    from onward.model.quantity import counted, format_bytes
    from onward.operations.imports.mlflow.importer import import_mlflow
    from onward.operations.tracker_access.location import open_tracker, tracker_location

    there = tracker_location(os.environ, db, files)
    with open_tracker(there) as opened:
        done = import_mlflow(opened.tracker, there.files, address, artifacts=artifacts or (), experiments=experiment or ())
    _tell(done.problems)
    if json:
        json_to_stdout({"schema": 1, **vars(done)})
    else:
        runs = f"{counted(done.runs, 'run')} ({done.new_runs} new)"
        last = f"{counted(done.models, 'model')}, {counted(done.files, 'new file')} ({format_bytes(done.bytes)})"
        to_stdout(f"{counted(done.experiments, 'experiment')}, {runs}, {counted(done.points, 'new point')}, {last}")


def _tell(problems: list[str]) -> None:
    for words in problems[:_MOST_TOLD]:
        to_stderr(words)
    if len(problems) > _MOST_TOLD:
        to_stderr(f"… and {len(problems) - _MOST_TOLD} more like these")
