"""`onward checkpoints`: what a run has saved, and whether it is whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from onward.cli.context import JsonOption, RunArgument, locate_run, repair_seen_runs
from onward.cli.output import age_text, json_to_stdout, safe, table, to_stderr, to_stdout


def checkpoints(
    run: RunArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare its hash.")] = False,
    json: JsonOption = False,
) -> None:
    """List a run's checkpoints; --verify reads every byte."""
    from onward.model.quantity import format_bytes
    from onward.operations.runs.record import SCHEMA

    opened = locate_run(run)
    found = opened.host.checkpoints(run=opened.run, verify=verify)
    own = opened.host.own_files(run=opened.run)
    if json:
        json_to_stdout({"schema": SCHEMA, "checkpoints": found, "own_files": list(own)})
    elif not found and not own:
        to_stderr("no checkpoint yet: what the training writes into ONWARD_CHECKPOINT_DIR or saves with run.checkpoint(step) appears here")
    elif found:
        table(
            ("STEP", "LEG", "SIZE", "STATE", "MADE", "FOLDER"),
            [
                (
                    str(entry["step"]),
                    str(entry["leg"]),
                    format_bytes(entry["bytes"]) if entry["bytes"] is not None else "–",
                    entry["state"],
                    age_text(entry.get("created")),
                    entry.get("problem") or entry["folder"],
                )
                for entry in found
            ],
            state_columns=(3,),
        )
    if own and not json:
        if found:
            to_stdout("")
        table(
            ("OWN FILE", "SIZE", "WRITTEN", "PUBLISHED"),
            [(safe(one["path"]), format_bytes(one["bytes"]), age_text(one["modified"]), _published(one)) for one in own],
        )
    if opened.host.hostname is None:
        repair_seen_runs()
    if any(entry["state"] == "damaged" for entry in found):
        raise typer.Exit(1)


def _published(file: Mapping[str, Any]) -> str:
    match file["published"]:
        case "yes":
            return f"with step {file['step']}"
        case "older":
            return f"an older version, with step {file['step']}"
        case _:
            return "no"
