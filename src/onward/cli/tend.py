"""`onward tend`: one pass over all runs, by hand or from cron."""

from __future__ import annotations

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import out, out_json, say


def tend(json: JsonOption = False) -> None:
    """Look after all runs once, and repair what got lost: for cron, or by hand."""
    from onward.operations.tend import tend as tend_all

    done = tend_all(open_desk())
    if json:
        out_json({"schema": 1, "looked_at": done.looked_at, "acted": done.acted, "problems": done.problems})
    else:
        for words in done.acted:
            out(words)
        for words in done.problems:
            say(f"onward: {words}")
        say(f"{done.looked_at} open runs, {len(done.acted)} mended, {len(done.problems)} problems")
    if done.problems:
        raise typer.Exit(6)
