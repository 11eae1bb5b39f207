"""`onward tend`: repair all runs once, by hand or from cron."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from onward.cli.context import JsonOption, current_folder, open_context, open_hosts
from onward.cli.output import json_to_stdout, to_stderr, to_stdout


def tend(
    install: Annotated[bool, typer.Option("--install", help="Run it every ten minutes, by a systemd user timer.")] = False,
    cron: Annotated[bool, typer.Option("--cron", help="With --install: use a line in your crontab instead.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Remove that timer or crontab line.")] = False,
    json: JsonOption = False,
) -> None:
    """Repair runs that lost their job, in all runs folders.

    For cron, or by hand. Prints nothing if nothing needs repair.
    """
    if install or uninstall or cron:
        _change_timer(install=install, cron=cron, uninstall=uninstall)
        return
    hosts = open_hosts()
    replies = hosts.ask(hosts.all, lambda host: host.tend())
    answers = [reply.answer for reply in replies if reply.answer]
    silent = [f"{reply.name}: {reply.error.message}; its runs are unknown, nothing was done" for reply in replies if reply.error]
    looked_at = sum(answer.looked_at for answer in answers)
    acted = [words for answer in answers for words in answer.acted]
    problems = [words for answer in answers for words in answer.problems] + silent
    if json:
        json_to_stdout({"schema": 1, "looked_at": looked_at, "acted": acted, "problems": problems})
    else:
        for words in acted:
            to_stdout(words)
        for words in problems:
            to_stderr(f"onward: {words}")
        if sys.stderr.isatty():  # cron would mail it, every ten minutes
            to_stderr(f"open runs: {looked_at}, repaired: {len(acted)}, problems: {len(problems)}")
    if problems:
        raise typer.Exit(6 if silent or any(answer.unanswered for answer in answers) else 1)


def _change_timer(*, install: bool, cron: bool, uninstall: bool) -> None:
    from onward.errors import InvalidInput
    from onward.operations.remembered_roots import roots_text
    from onward.operations.repair.timer import TendTimer

    if install == uninstall:
        raise InvalidInput("give either --install or --uninstall", hint="--cron goes with --install")
    context = open_context()
    timer = TendTimer(env=context.env, folder=current_folder())
    done = timer.install(cron=cron) if install else timer.uninstall()
    for words in done:
        to_stdout(words)
    if install:
        where = roots_text(list(map(str, context.roots)), "and")
        to_stderr(f"runs under {where} are repaired every ten minutes; onward tend --uninstall ends that")
    elif not done:
        to_stderr("no timer was installed")
