"""`onward tend`: one pass over all runs, by hand or from cron."""

from __future__ import annotations

import sys

import typer

from onward.cli.desk import JsonOption, open_reach
from onward.cli.render import out, out_json, say


def tend(json: JsonOption = False) -> None:
    """Repair what got lost, in all runs.

    For cron, or by hand. Says nothing where there is nothing to mend.
    """
    reach = open_reach()
    replies = reach.ask(reach.places, lambda place: place.tend())
    answers = [reply.answer for reply in replies if reply.answer]
    silent = [f"{reply.name}: {reply.error.message}; nothing is known, nothing was done" for reply in replies if reply.error]
    looked_at = sum(answer["looked_at"] for answer in answers)
    acted = [words for answer in answers for words in answer["acted"]]
    problems = [words for answer in answers for words in answer["problems"]] + silent
    if json:
        out_json({"schema": 1, "looked_at": looked_at, "acted": acted, "problems": problems})
    else:
        for words in acted:
            out(words)
        for words in problems:
            say(f"onward: {words}")
        if sys.stderr.isatty():  # cron would mail it, every ten minutes
            say(f"open runs: {looked_at}, mended: {len(acted)}, problems: {len(problems)}")
    if problems:
        raise typer.Exit(6 if silent or any(answer["unanswered"] for answer in answers) else 1)
