"""Requests and what goes back for them, as rows of the gateway's store, and back again."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, Row, Table, select, update

from onward.model.requests.outcome import Outcome
from onward.model.requests.request import (
    Outgoing,
    OutgoingKind,
    Request,
    RequestEnding,
    RequestRecord,
    RequestState,
    request_from_json,
    request_to_json,
)
from onward.model.requests.secrets import redacted
from onward.model.storable_text import clean
from onward.tracker.requests.schema import requests

_PLAIN = ("id", "protocol", "deadline", "priority", "reply_to", "correlation_id", "body_sha256", "received", "sender", "recipe")
_SAME = ("number", "run", "folder", "ending_by", "ending_at", "tries", "due", "words", "progress_at", "submitted", "settled")
_NOBODY = "the message named no reply queue"
_ELSEWHERE = "another gateway has answered it"


def request_row(request: Request) -> dict[str, Any]:
    values = {name: getattr(request, name) for name in _PLAIN}
    return {name: clean(value) if isinstance(value, str) else value for name, value in values.items()} | {
        "content": json.dumps(request_to_json(request))
    }


def record_of(row: Row[Any]) -> RequestRecord:
    held = row._mapping
    return RequestRecord(
        request=request_from_json(json.loads(held["content"]), **{name: held[name] for name in _PLAIN}),
        state=RequestState(held["state"]),
        ending=RequestEnding(held["ending"]) if held["ending"] else None,
        progress=json.loads(held["progress"]) if held["progress"] else None,
        outcome=Outcome.from_json(json.loads(held["outcome"])) if held["outcome"] else None,
        **{name: held[name] for name in _SAME},
    )


def forget_secrets(connection: Connection, id: str) -> None:
    """Once its run has them, or it gets none."""
    row = connection.execute(select(requests).where(requests.c.id == id)).one()
    kept = redacted(record_of(row).request)
    content = json.dumps(request_to_json(kept))
    if content != row.content:
        connection.execute(update(requests).where(requests.c.id == id).values(content=content))


def message_row(message: Outgoing, *, send: bool = True) -> dict[str, Any]:
    """One that nobody waits for, or that another gateway sends, is kept, and never due."""
    row = vars(message) | {"kind": str(message.kind), "payload": json.dumps(message.payload)}
    if message.reply_to and send:
        return row | {"due": message.made}
    return row | {"due": None, "error": _ELSEWHERE if message.reply_to else _NOBODY}


def message_of(row: Row[Any]) -> Outgoing:
    held = {name: value for name, value in row._mapping.items() if name != "number"}
    return Outgoing(**{**held, "kind": OutgoingKind(held["kind"]), "payload": json.loads(held["payload"])})


def insert_new(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    """Whether there was none of its id yet."""
    made = import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)
    statement = made.values(**row).on_conflict_do_nothing(index_elements=["id"]).returning(table.c.number)
    return connection.execute(statement).scalar() is not None
