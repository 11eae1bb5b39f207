"""`onward tend`: one pass over all runs, by hand or from cron."""

from __future__ import annotations

import sys

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import out, out_json, say


def tend(json: JsonOption = False) -> None:
    """Repair what got lost, in all runs.

    For cron, or by hand. Says nothing where there is nothing to mend.
    """
    from onward.operations.tend import tend as tend_all

    done = tend_all(open_desk())
    if json:
        out_json({"schema": 1, "looked_at": done.looked_at, "acted": done.acted, "problems": done.problems})
    else:
        for words in done.acted:
            out(words)
        for words in done.problems:
            say(f"onward: {words}")
        if sys.stderr.isatty():  # cron would mail it, every ten minutes
            say(f"open runs: {done.looked_at}, mended: {len(done.acted)}, problems: {len(done.problems)}")
    if done.problems:
        raise typer.Exit(6 if done.unanswered else 1)
