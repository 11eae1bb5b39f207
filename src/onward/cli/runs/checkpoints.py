"""`onward checkpoints`: what a run has saved, and whether it is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from onward.cli.context import JsonOption, RunArgument, locate_run, repair_seen_runs
from onward.cli.output import age_text, json_to_stdout, table, to_stderr


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
    if json:
        json_to_stdout({"schema": SCHEMA, "checkpoints": found})
    elif not found:
        to_stderr("no checkpoint yet: what the training writes into ONWARD_CHECKPOINT_DIR or saves with run.checkpoint(step) appears here")
    else:
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
    if opened.host.hostname is None:
        repair_seen_runs()
    if any(entry["state"] == "damaged" for entry in found):
        raise typer.Exit(1)
