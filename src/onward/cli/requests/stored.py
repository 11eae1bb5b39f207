"""`onward gateway requests`: what the gateway's store has, also while the gateway is down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onward.cli.context import JsonOption
from onward.cli.output import age_text, json_to_stdout, table, to_stderr
from onward.cli.server.tokens import DbOption

if TYPE_CHECKING:
    from onward.model.requests.request import Outgoing, RequestRecord
    from onward.tracker.requests.store import Requests


def register(app: typer.Typer) -> None:
    app.command("requests")(requests)


def requests(
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="Only these: open, accepted, submitted, running, done, failed, cancelled, …"),
    ] = None,
    text: Annotated[str, typer.Option("--text", metavar="TEXT", help="Only those with this in id, sender or recipe, or of this run.")] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="The most to list.")] = 100,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List requests, newest first, and what they wait for."""
    from onward.model.requests.standing import standings

    states = standings(state) if state else ()
    with open_requests(db) as store:
        found = store.list(states=states, text=text, limit=limit)
        replies = store.outbox.replies([one.id for one in found])
        counts = store.counts()
    rows = [_row(one, replies.get(one.id)) for one in found]
    if json:
        json_to_stdout({"schema": 1, "requests": rows, "counts": counts})
        return
    table(
        ("ID", "SENDER", "RECIPE", "STATE", "CAME", "RUN", "WAITS FOR"),
        [
            (row["id"], row["sender"], row["recipe"], row["state"], age_text(row["received"]), row["run"] or "–", row["waits_for"])
            for row in rows
        ],
        state_columns=(3,),
    )
    to_stderr(", ".join(f"{count} {word.replace('_', ' ')}" for word, count in sorted(counts.items())) or "no requests")
    if len(rows) == limit:
        to_stderr(f"these are the newest {limit}; --limit lists more")


@contextmanager
def open_requests(db: str | None) -> Iterator[Requests]:
    """The gateway's store, which must be there."""
    import os

    from onward.operations.tracker_access.location import tracker_location
    from onward.tracker.requests.store import Requests

    store = Requests.open(tracker_location(os.environ, db).requests, create=False)
    try:
        yield store
    finally:
        store.close()


def _row(record: RequestRecord, reply: Outgoing | None) -> dict[str, Any]:
    from onward.model.requests.standing import standing_of, waits_for

    return {
        "id": record.id,
        "sender": record.request.sender,
        "protocol": record.request.protocol,
        "recipe": record.request.recipe,
        "state": standing_of(record),
        "received": record.accepted,
        "submitted": record.submitted,
        "settled": record.settled,
        "run": record.run if record.folder else None,
        "folder": record.folder,
        "waits_for": waits_for(record, reply),
        "reason": record.outcome.reason if record.outcome else "",
        "reply_sent": reply.sent if reply else None,
    }
