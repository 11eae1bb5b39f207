"""`onward clean`: how much room what is no longer needed takes, and its removal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onward.cli.context import JsonOption, open_context
from onward.cli.output import age_text, json_to_stdout, table, to_stderr, to_stdout

if TYPE_CHECKING:
    from onward.operations.admin.cleanup import FolderScan, Removable


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it. Default: only list it.")] = False,
    older: Annotated[float, typer.Option("--older", metavar="DAYS", min=0, help="Only what was not used for this many days.")] = 0,
    node: Annotated[bool, typer.Option("--node", help="Instead: what killed legs left on this machine's own disks.")] = False,
    json: JsonOption = False,
) -> None:
    """List what can be removed, with its size.

    Work folders of runs and pipelines that are over, and environments that no open run uses. Never results, checkpoints or logs.
    With --node: folders of legs whose process is gone, unless they hold an unpublished checkpoint.
    """
    from onward.operations.admin.cleanup import remove_scanned, scan_node, scan_roots

    context = open_context()
    found = (scan_node if node else scan_roots)(context, older=older * 86400)
    gone, problems = remove_scanned(context, found, older=older * 86400) if yes else ([], [])
    if json:
        json_to_stdout(_told(found, gone, problems))
    else:
        _show(found, gone, yes=yes, node=node)
        for problem in problems:
            to_stderr(f"onward: {problem}")
    if problems:
        raise typer.Exit(1)


def _show(found: FolderScan, gone: list[Removable], *, yes: bool, node: bool) -> None:
    from onward.model.quantity import format_bytes

    shown = gone if yes else found.items
    if shown:
        rows = [(item.kind, format_bytes(item.bytes), age_text(item.at), item.name, str(item.path)) for item in shown]
        table(("WHAT", "FREES", "LAST USED", "OF", "FOLDER"), rows)
    total = format_bytes(sum(item.bytes for item in shown))
    for kept in found.kept:
        to_stderr(f"kept: {kept.path}: {kept.why}")
    if yes:
        to_stdout(f"{total} freed")
    elif shown:
        to_stdout(f"{total} would be freed; onward clean {'--node ' if node else ''}--yes does it")
    else:
        to_stderr("nothing to remove")


def _told(found: FolderScan, gone: list[Removable], problems: list[str]) -> dict[str, Any]:
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
