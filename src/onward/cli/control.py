"""`onward cancel`, `stop` and `resume`: what a person may ask of a run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from onward.cli.desk import JsonOption, RunArgument, open_desk, open_run
from onward.cli.render import out_json, say


def cancel(run: RunArgument, json: JsonOption = False) -> None:
    """End a run now, without a last checkpoint."""
    from onward.operations.control import cancel as cancel_run

    desk = open_desk()
    _tell(cancel_run(desk, open_run(desk, run)), json)


def stop(run: RunArgument, json: JsonOption = False) -> None:
    """Have a run save a checkpoint, then end."""
    from onward.operations.control import stop as stop_run

    desk = open_desk()
    stopped = stop_run(desk, open_run(desk, run))
    if not json and not stopped.closed:
        say(f"{stopped.spec.name}: the training is asked to save and stop; onward show {stopped.spec.id} tells when it has")
        return
    _tell(stopped, json)


def resume(
    run: RunArgument,
    time: Annotated[str | None, typer.Option("--time", "-t", metavar="TIME", help="Another limit of one leg.", show_default=False)] = None,
    mem: Annotated[str | None, typer.Option("--mem", metavar="SIZE", help="Another memory.", show_default=False)] = None,
    mem_max: Annotated[str | None, typer.Option("--mem-max", metavar="SIZE", help="Another most memory.", show_default=False)] = None,
    max_legs: Annotated[str | None, typer.Option("--max-legs", metavar="N", help="Legs to allow from here on.", show_default=False)] = None,
    max_restarts: Annotated[str | None, typer.Option("--max-restarts", metavar="N", help="Bad ends to bear.", show_default=False)] = None,
    total_time: Annotated[
        str | None, typer.Option("--total-time", metavar="TIME", help="Time to allow from here on.", show_default=False)
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", "-p", metavar="NAME", help="Another partition.", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Go on with a run that stopped.

    A stopped, failed or cancelled run goes on as its next leg, from its newest good checkpoint.
    """
    from onward.operations.control import resume as resume_run
    from onward.pipelines.flags import changes_from_flags

    flags = {
        "time": time,
        "mem": mem,
        "mem-max": mem_max,
        "max-legs": max_legs,
        "max-restarts": max_restarts,
        "total-time": total_time,
        "partition": partition,
    }
    desk = open_desk()
    resumed = resume_run(desk, open_run(desk, run), changes=changes_from_flags(flags))
    if json:
        _tell(resumed, json)
        return
    leg = resumed.legs[resumed.first_leg]
    queued = f"is job {leg.job}" if leg.job else "is being queued by somebody else"
    say(f"{resumed.spec.name}: leg {leg.number} {queued}; onward logs -f {resumed.spec.id}")


def _tell(run: Any, json: bool) -> None:
    if json:
        reason = run.closed.cause if run.closed else ""
        out_json({"schema": 1, "id": run.spec.id, "name": run.spec.name, "state": run.state, "reason": reason})
    else:
        say(f"{run.spec.name} is {run.state}" + (f": {run.closed.cause}" if run.closed else ""))
        if run.closed and run.closed.next:
            say(f"  → {run.closed.next}")
