"""`onward runs`: the list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onward.cli.context import JsonOption, open_hosts, repair_seen_runs
from onward.cli.output import age_text, json_to_stdout, percent, table, to_stderr

_NEWEST = 30


def runs(
    state: Annotated[str | None, typer.Option("--state", help="Only runs in this state.", show_default=False)] = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All runs, not only the newest 30; those of pipelines one by one.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List runs, newest last. The runs of a pipeline are one line."""
    from onward.errors import InvalidInput
    from onward.model.run import RunState
    from onward.operations.remembered_roots import roots_text
    from onward.operations.runs.record import SCHEMA

    if state and state not in list(RunState):
        raise InvalidInput(f"no state named {state!r}", hint=f"one of {', '.join(RunState)}")
    newest = None if everything or json or state else _NEWEST
    hosts = open_hosts()
    replies = hosts.ask(hosts.all, lambda host: host.runs(state=state, newest=newest, fold=newest is not None))
    answers = [(reply.host.hostname, reply.answer) for reply in replies if reply.answer]
    records = [{**entry, "host": host} for host, answer in answers for entry in answer.runs]
    pipelines = [{**line, "host": host} for host, answer in answers for line in answer.pipelines]
    if len(answers) > 1 or pipelines:
        records = sorted([*records, *pipelines], key=lambda entry: entry["created"])
    older = sum(answer.older for _, answer in answers)
    if newest and len(records) > newest:
        older, records = older + len(records) - newest, records[-newest:]
    for words in [words for _, answer in answers for words in answer.broken]:
        to_stderr(f"onward: {words}")
    silent = {reply.name: reply.error for reply in replies if reply.error}
    for host, error in silent.items():
        to_stderr(f"onward: the runs on {host} are not shown: {error.message}")
        if error.hint:
            to_stderr(f"  → {error.hint}")
    roots = [root for _, answer in answers for root in answer.roots]
    if json:
        unanswered = [{"host": host, "reason": str(error)} for host, error in silent.items()]
        json_to_stdout({"schema": SCHEMA, "runs": records, "roots": roots, "unanswered": unanswered})
    elif not records:
        where = roots_text(roots)
        to_stderr(f"no run under {where} is {state}" if state else f"no runs under {where}; onward submit starts one")
    else:
        _print(records, older)
        to_stderr(f"runs under {roots_text(roots, 'and')}")
    repair_seen_runs()


def _print(records: list[dict[str, Any]], older: int) -> None:
    several = len({entry["cluster"] for entry in records}) > 1
    table(
        ("ID", "NAME", "STATE", "LEGS", "PROGRESS", *(["CLUSTER"] if several else []), "MADE", "WHY"),
        [_pipeline_row(entry, several) if "stages_all" in entry else _run_row(entry, several) for entry in records],
        state_columns=(2,),
    )
    if older:
        to_stderr(f"and {older} older: --all shows them")


def _run_row(entry: dict[str, Any], several: bool) -> tuple[str, ...]:
    return (
        entry["id"],
        entry["name"],
        entry["state"],
        str(sum(1 for leg in entry["legs"] if leg["started"])),
        _progress(entry["progress"]),
        *([entry["cluster"]] if several else []),
        age_text(entry["created"]),
        entry["reason"],
    )


def _pipeline_row(entry: dict[str, Any], several: bool) -> tuple[str, ...]:
    """Its runs are not named: `onward pipeline show` does that."""
    folder = Path(entry["folder"]).name
    return (
        "pipeline",
        folder,
        entry["state"],
        "–",
        f"{entry['stages_done']}/{entry['stages_all']} stages",
        *([entry["cluster"]] if several else []),
        age_text(entry["created"]),
        entry["cause"] or f"onward pipeline show {folder}",
    )


def _progress(progress: dict[str, Any]) -> str:
    step, total = progress["step"], progress["total"]
    if step is None:
        return "–"
    return f"{step}/{total} {percent(step, total)} %" if total else f"step {step}"
