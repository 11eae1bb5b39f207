"""Tables of the server itself: the counter of commits, settings, tokens, saved views."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, String, Table, Text, UniqueConstraint

from onward.tracker.schema.base import Id, metadata

store = Table(
    "store",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", BigInteger, nullable=False),  # one more with every commit that changes anything
)

settings = Table("settings", metadata, Column("key", String(250), primary_key=True), Column("value", Text, nullable=False))

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("name", String(250), nullable=False, server_default=""),
    Column("rights", String(16), nullable=False, server_default="write"),
    Column("run", String(64)),
    Column("cluster", String(250)),
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("revoked", Double),
    Column("last_used", Double),
    Column("parent", String(32)),  # of a session: the token that it was made from
)

views = Table(  # named ones of the pages: a page, and what its address says after it
    "views",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(250), nullable=False),
    Column("page", String(64), nullable=False),
    Column("name", String(250), nullable=False),
    Column("query", Text, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    UniqueConstraint("owner", "page", "name"),
)
