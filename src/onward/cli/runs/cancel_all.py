"""`onward cancel --all`: says what it will end, asks, and ends it, on every host."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from onward.cli.context import folder_text, open_hosts
from onward.cli.output import json_to_stdout, table, to_stderr
from onward.errors import InvalidInput, OnwardError

if TYPE_CHECKING:
    from onward.operations.hosts.all_hosts import HostReply
    from onward.operations.hosts.answers import OpenRuns
    from onward.operations.hosts.local import Host
    from onward.operations.runs.open_run import OpenRun

_AT_ONCE = 20  # of one host in one call, so that none takes for ever


def cancel_all(words: str | None, *, yes: bool, json: bool) -> None:
    if words is not None and not words.strip():  # an unset variable in a script must not mean everything
        raise InvalidInput("the words of onward cancel --all are empty", hint="leave them out to cancel all runs of yours")
    hosts = open_hosts()
    replies = hosts.ask(hosts.all, lambda host: host.open_runs(words=words or ""))
    found = [(reply.host, run) for reply in replies if reply.answer for run in reply.answer.runs]
    code = _tell_silent(replies)
    if not found and not json:
        to_stderr(f"nothing of yours that is open has {words!r}" if words else "nothing of yours is open")
    if found and not json:
        _list(found)
    if found and not yes:
        _ask(len(found))
    ended = _cancel(found, quiet=json)
    if json:
        json_to_stdout({"schema": 1, "runs": ended})
    code = max([code, *(run["exit_code"] for run in ended)])
    if code:
        raise typer.Exit(code)


def _tell_silent(replies: list[HostReply[OpenRuns]]) -> int:
    code = 0
    for reply in replies:
        for text in reply.answer.broken if reply.answer else ():
            to_stderr(f"onward: {text}")
        if reply.error:
            to_stderr(f"onward: nothing on {reply.name} is cancelled: {reply.error.message}")
            code = reply.error.exit_code
    return code


def _list(found: list[tuple[Host, OpenRun]]) -> None:
    rows = [(run.id, run.name, run.state, run.experiment, run.cluster, folder_text(host.hostname, run.folder)) for host, run in found]
    table(("ID", "NAME", "STATE", "EXPERIMENT", "CLUSTER", "FOLDER"), rows, state_columns=(2,))


def _ask(count: int) -> None:
    if not _at_a_terminal():
        raise InvalidInput("onward cancel --all asks first, and nobody is at a terminal to answer", hint="--yes goes without asking")
    if not typer.confirm(f"cancel {'this one' if count == 1 else f'these {count}'}, without a last checkpoint?", err=True):
        raise OnwardError("nothing is cancelled")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _cancel(found: list[tuple[Host, OpenRun]], *, quiet: bool) -> list[dict[str, Any]]:
    ended: list[dict[str, Any]] = []
    places = {id(host): host for host, _ in found}
    for host in places.values():
        runs = [run for where, run in found if where is host]
        silent: list[str] = []
        for start in range(0, len(runs), _AT_ONCE):
            some = runs[start : start + _AT_ONCE]
            try:
                answer = host.cancel_many(folders=[run.folder for run in some], silent=silent)
            except OnwardError as error:  # a host that went away: the others are still to be asked
                to_stderr(f"onward: {len(runs) - start} runs on {host.hostname or 'this machine'} may continue: {error.message}")
                lost = {"state": "", "error": error.message, "hint": error.hint, "exit_code": error.exit_code}
                ended += [{"id": run.id, "name": run.name, "folder": run.folder, "host": host.hostname, **lost} for run in runs[start:]]
                break
            silent = list(answer.silent)
            for run, result in zip(some, answer.runs, strict=True):
                ended.append({"id": run.id, "name": run.name, "host": host.hostname, **vars(result)})
                if not quiet:
                    _tell(ended[-1])
    return ended


def _tell(run: dict[str, Any]) -> None:
    if not run["error"]:
        to_stderr(f"{run['name']} is {run['state']}")
        return
    to_stderr(f"onward: {run['name']}: {run['error']}")
    if run["hint"]:
        to_stderr(f"  → {run['hint']}")
