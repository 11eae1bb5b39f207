"""Reply queues of one request. Whoever sends it again from another queue, after a crash for example, gets the one answer there too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, delete, select, update

from onward.model.requests.request import Outgoing, OutgoingKind, Request, make_outgoing
from onward.tracker.requests.rows import insert_new, message_of, message_row
from onward.tracker.requests.schema import messages, requests

_c = messages.c
_NOT_YET = "it waits for the end of the request"


def add_reply_queue(connection: Connection, again: Request) -> None:
    """Progress goes to the newest from now on, the answer to all; at once where it is there."""
    if not again.reply_to:
        return
    first = connection.execute(select(requests.c.reply_to, requests.c.correlation_id).where(requests.c.id == again.id)).one()
    if (first.reply_to, first.correlation_id) == (again.reply_to, again.correlation_id):
        return
    reply = connection.execute(select(messages).where(_c.id == f"{again.id}.reply")).one_or_none()
    if reply is not None:
        there = message_of(reply)
        insert_new(connection, messages, message_row(_reply_to(again, there.payload, at=max(there.made, again.received))))
        return
    if first.reply_to:
        former = _reply_to(replace(again, reply_to=first.reply_to, correlation_id=first.correlation_id), {}, at=again.received)
        insert_new(connection, messages, message_row(former) | {"due": None, "error": _NOT_YET})
    newest = {"reply_to": again.reply_to, "correlation_id": again.correlation_id}
    connection.execute(update(requests).where(requests.c.id == again.id).values(**newest))


def answer_the_others(connection: Connection, request: Request, reply: Outgoing) -> None:
    """With the answer as it goes to the newest queue."""
    others = (_c.request == request.id, _c.kind == str(OutgoingKind.REPLY), _c.error == _NOT_YET)
    own = _reply_to(request, {}, at=reply.made).id  # it was asked for from the newest queue once more
    connection.execute(delete(messages).where(*others, _c.id == own))
    connection.execute(update(messages).where(*others).values(payload=json.dumps(reply.payload), due=reply.made, error=""))


def _reply_to(to: Request, payload: Mapping[str, Any], *, at: float) -> Outgoing:
    queue = hashlib.sha256(f"{to.reply_to} {to.correlation_id}".encode(errors="replace")).hexdigest()[:16]
    return make_outgoing(to, OutgoingKind.REPLY, payload, name=f"reply.{queue}", at=at)
