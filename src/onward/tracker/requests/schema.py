"""The tables of the gateway's store: requests, what goes back for them, and the store's own key. Times are unix seconds.

They are apart from the tracker's: its file has one server, and the gateway is a process of its own.
"""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, MetaData, String, Table, Text

from onward.model.requests.request import MOST_ID
from onward.tracker.schema import Id

VERSION = 1

metadata = MetaData()

request_store = Table(
    "request_store",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("key", String(64), nullable=False),  # signs the addresses of results
)

requests = Table(
    "requests",
    metadata,
    Column("number", Id, primary_key=True),
    Column("id", String(MOST_ID), nullable=False, unique=True),
    Column("sender", Text, nullable=False),
    Column("protocol", String(8), nullable=False),
    Column("recipe", Text, nullable=False),
    Column("content", Text, nullable=False),  # inputs, settings and resources, as JSON
    Column("deadline", Double),
    Column("priority", Integer, nullable=False),
    Column("reply_to", Text),
    Column("correlation_id", Text),
    Column("body_sha256", String(64), nullable=False),
    Column("received", Double, nullable=False),
    Column("state", String(16), nullable=False),
    Column("run", String(64)),
    Column("folder", Text),
    Column("ending", String(16)),
    Column("ending_by", Text, nullable=False, server_default=""),
    Column("ending_at", Double),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("due", Double, nullable=False, server_default="0"),
    Column("words", Text, nullable=False, server_default=""),
    Column("progress", Text),
    Column("progress_at", Double),
    Column("submitted", Double),
    Column("settled", Double),
    Column("outcome", Text),  # as JSON
    Column("outcome_state", String(16)),  # to search by
)
Index("ix_requests_state", requests.c.state, requests.c.sender)
Index("ix_requests_line", requests.c.state, requests.c.recipe)
Index("ix_requests_run", requests.c.run)

messages = Table(  # the outbox, and its history
    "request_messages",
    metadata,
    Column("number", Id, primary_key=True),
    Column("id", String(MOST_ID + 100), nullable=False, unique=True),
    Column("request", String(MOST_ID), nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("protocol", String(8), nullable=False),
    Column("reply_to", Text),
    Column("correlation_id", Text),
    Column("payload", Text, nullable=False),
    Column("made", Double, nullable=False),
    Column("due", Double),  # when it is tried next; null: it was sent, or there is nobody to send it to
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("sent", Double),
    Column("error", Text, nullable=False, server_default=""),
)
Index("ix_request_messages_due", messages.c.due)
