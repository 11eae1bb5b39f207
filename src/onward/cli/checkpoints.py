"""`onward checkpoints`: what a run has saved, and whether it is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from onward.cli.desk import JsonOption, RunArgument, after_look, open_run
from onward.cli.render import ago, out_json, say, table


def checkpoints(
    run: RunArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare its hash.")] = False,
    json: JsonOption = False,
) -> None:
    """List a run's checkpoints; --verify reads every byte."""
    from onward.model.quantity import format_bytes
    from onward.operations.inspect import SCHEMA

    opened = open_run(run)
    found = opened.place.checkpoints(run=opened.run, verify=verify)["checkpoints"]
    if json:
        out_json({"schema": SCHEMA, "checkpoints": found})
    elif not found:
        say("no checkpoint yet: what the training writes into ONWARD_CHECKPOINT_DIR, or saves by run.checkpoint(step), appears here")
    else:
        table(
            ("STEP", "LEG", "SIZE", "STATE", "MADE", "FOLDER"),
            [
                (
                    str(entry["step"]),
                    str(entry["leg"]),
                    format_bytes(entry["bytes"]) if entry["bytes"] is not None else "–",
                    entry["state"],
                    ago(entry.get("created")),
                    entry.get("problem") or entry["folder"],
                )
                for entry in found
            ],
            state_columns=(3,),
        )
    if opened.place.host is None:
        after_look()
    if any(entry["state"] == "damaged" for entry in found):
        raise typer.Exit(1)
