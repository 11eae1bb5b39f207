"""`onward gateway dead`, `retry` and `forget`: the messages in the queue onward.dead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.context import JsonOption
from onward.cli.output import age_text, json_to_stdout, table, to_stderr, to_stdout
from onward.cli.requests.gateway import quiet_library
from onward.cli.requests.stored import open_requests
from onward.cli.server.tokens import DbOption
from onward.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from onward.gateway.dead_letter_acts import DeadLetterActs, DeadLetterResult


def register(app: typer.Typer) -> None:
    app.command("dead")(dead)
    app.command("retry")(retry)
    app.command("forget")(forget)


def dead(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="The most to list, oldest first.")] = 100,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List the messages that were put aside, and why."""
    import asyncio

    from onward.model.quantity import format_bytes

    with _acts(db) as acts:
        found = asyncio.run(acts.list(limit=limit))
    if json:
        json_to_stdout({"schema": 1, "letters": [asdict(one) for one in found.letters], "count": found.count})
        return
    rows = [(one.id, one.queue or "–", age_text(one.at), format_bytes(one.size), one.reason) for one in found.letters]
    table(("ID", "QUEUE", "PUT ASIDE", "SIZE", "REASON"), rows)
    if found.count > limit:
        to_stderr(f"these are the oldest {limit} of {found.count}; --limit lists more")
    elif not found.letters:
        to_stderr("no dead letters")


def retry(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="A dead letter, by its id from `onward gateway dead`.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are there now.")] = False,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Send dead letters to their queues again, once."""
    import asyncio

    if (id is not None) == everything:
        raise InvalidInput("name one dead letter, or --all", hint="`onward gateway dead` lists them")
    with _acts(db) as acts:
        _tell(asyncio.run(acts.retry(id)), "sent again", json=json)


def forget(
    id: Annotated[str, typer.Argument(metavar="ID", help="A dead letter, by its id from `onward gateway dead`.")],
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Remove a dead letter for good."""
    import asyncio

    with _acts(db) as acts:
        _tell(asyncio.run(acts.forget(id)), "removed", json=json)


def _tell(result: DeadLetterResult, how: str, *, json: bool) -> None:
    if json:
        json_to_stdout({"schema": 1, "letters": [asdict(one) for one in result.done], "problems": result.problems})
    else:
        for letter in result.done:
            to_stdout(f"{letter.id} {how}")
        for problem in result.problems:
            to_stderr(f"onward: {problem}")
        if not result.done and not result.problems:
            to_stderr("no dead letters")
    if result.problems:
        raise typer.Exit(5)


@contextmanager
def _acts(db: str | None) -> Iterator[DeadLetterActs]:
    """With the gateway's store, if there is one here."""
    import os
    from contextlib import ExitStack

    from onward.clock import SystemClock
    from onward.gateway.dead_letter_acts import DeadLetterActs
    from onward.gateway.rabbitmq.connection import Broker
    from onward.settings import load_settings

    quiet_library()
    with ExitStack() as stack:
        try:
            store = stack.enter_context(open_requests(db))
        except NotFound:
            store = None
        yield DeadLetterActs(Broker.of(os.environ, load_settings(os.environ).gateway), store, now=SystemClock().now())
