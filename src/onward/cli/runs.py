"""`onward runs`: the list."""

from __future__ import annotations

from typing import Annotated

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import ago, out_json, progress_words, say, table


def runs(
    state: Annotated[str | None, typer.Option("--state", help="Only runs in this state.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All runs, not only the newest 30.")] = False,
    json: JsonOption = False,
) -> None:
    """List runs, newest last."""
    from onward.errors import InvalidInput
    from onward.model.run import RunState
    from onward.operations.inspect import SCHEMA, look, record
    from onward.rundir.layout import runs_under

    if state and state not in list(RunState):
        raise InvalidInput(f"there is no state {state!r}", hint=f"one of {', '.join(RunState)}")
    desk = open_desk()
    found = runs_under(desk.root)
    shown = found if everything or json or state else found[-30:]
    records = [record(seen, details=False) for seen in look(desk, shown)]
    records = [entry for entry in records if state is None or entry["state"] == state]
    if json:
        out_json({"schema": SCHEMA, "runs": records})
        return
    if not records:
        say(f"no runs under {desk.root}" + (f" are {state}" if state else "; onward submit makes one"))
        return
    table(
        ("ID", "NAME", "STATE", "LEGS", "PROGRESS", "CLUSTER", "MADE", "WHY"),
        [
            (
                entry["id"],
                entry["name"],
                entry["state"],
                str(sum(1 for leg in entry["legs"] if leg["started"])),
                _short_progress(entry["progress"]),
                entry["cluster"],
                ago(entry["created"]),
                entry["reason"],
            )
            for entry in records
        ],
        state_columns=(2,),
    )
    if len(shown) < len(found):
        say(f"and {len(found) - len(shown)} older ones: --all shows them")


def _short_progress(progress: dict[str, object]) -> str:
    return progress_words({**progress, "steps_per_second": None, "eta": None}) if progress["step"] is not None else "–"
