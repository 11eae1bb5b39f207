"""`onward cancel`, `stop`, `resume` and `adopt`: what a person may ask of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.context import JsonOption, RunArgument, folder_text, locate_run
from onward.cli.output import json_to_stdout, to_stderr

if TYPE_CHECKING:
    from onward.operations.hosts.answers import RunAfterAct


def cancel(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run, as elsewhere; with --all, words that all of id, name, state, experiment and cluster together must have.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All open runs and pipelines of yours, or those with these words.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --all: without asking first.")] = False,
    json: JsonOption = False,
) -> None:
    """End a run now, without a last checkpoint; or all of yours."""
    if everything:
        from onward.cli.runs.cancel_all import cancel_all

        cancel_all(run, yes=yes, json=json)
        return
    if run is None:
        context.fail("Missing argument 'RUN': `onward runs` lists the runs; name one by its id, name or folder. --all means all of yours")
    found = locate_run(run, acting=True)
    _tell(found.host.cancel(run=found.run), json)


def stop(run: RunArgument, json: JsonOption = False) -> None:
    """Have a run save a checkpoint, then end."""
    found = locate_run(run, acting=True)
    stopped = found.host.stop(run=found.run)
    if not json and not stopped.closed:
        to_stderr(f"{stopped.name}: the training is asked to save and stop; onward show {stopped.id} shows when it has")
        return
    _tell(stopped, json)


def resume(
    run: RunArgument,
    time: Annotated[str | None, typer.Option("--time", "-t", metavar="TIME", help="New time limit of a leg.", show_default=False)] = None,
    mem: Annotated[str | None, typer.Option("--mem", metavar="SIZE", help="New memory per node.", show_default=False)] = None,
    mem_max: Annotated[str | None, typer.Option("--mem-max", metavar="SIZE", help="New upper bound of memory.", show_default=False)] = None,
    max_legs: Annotated[str | None, typer.Option("--max-legs", metavar="N", help="Legs to allow from now on.", show_default=False)] = None,
    max_restarts: Annotated[
        str | None,
        typer.Option("--max-restarts", metavar="N", help="New max restarts.", show_default=False),
    ] = None,
    total_time: Annotated[
        str | None, typer.Option("--total-time", metavar="TIME", help="Time in legs to allow from now on.", show_default=False)
    ] = None,
    partition: Annotated[str | None, typer.Option("--partition", "-p", metavar="NAME", help="New partition.", show_default=False)] = None,
    checkpoints: Annotated[
        str | None, typer.Option("--checkpoints", metavar="own", help="own: it keeps checkpoints of its own.", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Continue a run that is over.

    A stopped, failed or cancelled run continues as its next leg, from its newest good checkpoint.
    """
    from onward.inputs.params.flags import changes_from_flags

    flags = {
        "time": time,
        "mem": mem,
        "mem-max": mem_max,
        "max-legs": max_legs,
        "max-restarts": max_restarts,
        "total-time": total_time,
        "partition": partition,
        "checkpoints": checkpoints,
    }
    changes = changes_from_flags(flags)
    found = locate_run(run, acting=True)
    resumed = found.host.resume(run=found.run, changes=changes)
    if json:
        _tell(resumed, json)
        return
    queued = f"is job {resumed.job}" if resumed.job else "is being queued by another command"
    to_stderr(f"{resumed.name}: leg {resumed.leg} {queued}; onward logs -f {resumed.id}")


def adopt(run: RunArgument, json: JsonOption = False) -> None:
    """Make a folder the run's home, after a move.

    A run lives in one folder; a copy of it is refused. Use it if Onward cannot tell a moved folder from a copy.
    """
    found = locate_run(run, acting=True)
    adopted = found.host.adopt(run=found.run)
    if json:
        _tell(adopted, json)
    else:
        to_stderr(f"{adopted.name} ({adopted.id}) lives in {folder_text(found.host.hostname, found.run)} from now on")


def _tell(run: RunAfterAct, json: bool) -> None:
    if json:
        json_to_stdout({"schema": 1, "id": run.id, "name": run.name, "state": run.state, "reason": run.reason})
    else:
        to_stderr(f"{run.name} is {run.state}" + (f": {run.reason}" if run.closed else ""))
        if run.next:
            to_stderr(f"  → {run.next}")
