"""`onward runs`: the list."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import ago, out_json, percent, say, table


def runs(
    state: Annotated[str | None, typer.Option("--state", help="Only runs in this state.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All runs, not only the newest 30.")] = False,
    json: JsonOption = False,
) -> None:
    """List runs, newest last."""
    from onward.errors import InvalidInput
    from onward.model.run import RunState
    from onward.operations.inspect import SCHEMA, look_at_all, record

    if state and state not in list(RunState):
        raise InvalidInput(f"there is no state {state!r}", hint=f"one of {', '.join(RunState)}")
    desk = open_desk()
    found = desk.runs()
    shown = found if everything or json or state else found[-30:]
    readable, broken = look_at_all(desk, shown)
    records = [record(seen, details=False) for seen in readable if state is None or seen.run.state == state]
    for error in broken:
        say(f"onward: {error}")
    if json:
        out_json({"schema": SCHEMA, "runs": records})
        return
    if not records:
        roots = " or ".join(map(str, desk.roots))
        say(f"no run under {roots} is {state}" if state else f"no runs under {roots}; onward submit makes one")
        return
    several = len({entry["cluster"] for entry in records}) > 1
    table(
        ("ID", "NAME", "STATE", "LEGS", "PROGRESS", *(["CLUSTER"] if several else []), "MADE", "WHY"),
        [
            (
                entry["id"],
                entry["name"],
                entry["state"],
                str(sum(1 for leg in entry["legs"] if leg["started"])),
                _progress(entry["progress"]),
                *([entry["cluster"]] if several else []),
                ago(entry["created"]),
                entry["reason"],
            )
            for entry in records
        ],
        state_columns=(2,),
    )
    if len(shown) < len(found):
        say(f"and {len(found) - len(shown)} older ones: --all shows them")


def _progress(progress: dict[str, Any]) -> str:
    step, total = progress["step"], progress["total"]
    if step is None:
        return "–"
    return f"{step}/{total} {percent(step, total)} %" if total else f"step {step}"
