"""`onward clean`: how much room what is no longer needed takes, and its removal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import ago, out, out_json, say, table

if TYPE_CHECKING:
    from onward.operations.clean import Found, Item


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; else it is only said.")] = False,
    older: Annotated[float, typer.Option("--older", metavar="DAYS", min=0, help="Only what nothing has used for so many days.")] = 0,
    node: Annotated[bool, typer.Option("--node", help="What killed legs left on this machine's own disks, instead.")] = False,
    json: JsonOption = False,
) -> None:
    """Say what can be removed, and how much room it takes.

    Work folders of runs and pipelines that are over, and environments that nothing open uses. Never results, checkpoints or logs.
    With --node: folders of legs whose process has gone, unless they hold a checkpoint that is not published.
    """
    from onward.operations.clean import look, look_at_node, remove

    desk = open_desk()
    found = (look_at_node if node else look)(desk, older=older * 86400)
    gone, problems = remove(desk, found, older=older * 86400) if yes else ([], [])
    if json:
        out_json(_told(found, gone, problems))
    else:
        _show(found, gone, yes=yes, node=node)
        for problem in problems:
            say(f"onward: {problem}")
    if problems:
        raise typer.Exit(1)


def _show(found: Found, gone: list[Item], *, yes: bool, node: bool) -> None:
    from onward.model.quantity import format_bytes

    shown = gone if yes else found.items
    if shown:
        rows = [(item.kind, format_bytes(item.bytes), ago(item.at), item.name, str(item.path)) for item in shown]
        table(("WHAT", "FREES", "LAST USED", "OF", "FOLDER"), rows)
    total = format_bytes(sum(item.bytes for item in shown))
    for kept in found.kept:
        say(f"kept: {kept.path}: {kept.why}")
    if yes:
        out(f"{total} freed")
    elif shown:
        out(f"{total} would be freed; onward clean {'--node ' if node else ''}--yes does it")
    else:
        say("there is nothing to remove")


def _told(found: Found, gone: list[Item], problems: list[str]) -> dict[str, Any]:
    removed = {item.path for item in gone}
    return {
        "schema": 1,
        "items": [
            {
                "kind": item.kind,
                "path": str(item.path),
                "name": item.name,
                "bytes": item.bytes,
                "at": item.at,
                "removed": item.path in removed,
            }
            for item in found.items
        ],
        "kept": [{"path": str(kept.path), "why": kept.why} for kept in found.kept],
        "bytes": found.bytes,
        "freed": sum(item.bytes for item in gone),
        "problems": problems,
    }
