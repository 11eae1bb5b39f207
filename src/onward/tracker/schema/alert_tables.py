"""Tables of alerts: rules, channels, notices."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Double, Index, Integer, String, Table, Text, UniqueConstraint

from onward.tracker.schema.base import Id, metadata

alert_rules = Table(
    "alert_rules",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(250), nullable=False, unique=True),
    Column("kind", String(32), nullable=False),
    Column("filter", Text, nullable=False),
    Column("after", Double),
    Column("channels", Text, nullable=False),  # their ids, as JSON
    Column("lines", Boolean, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("since", Double, nullable=False),
)

alert_channels = Table(  # without their secrets, which lie in a file of the server's own
    "alert_channels",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(250), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("target", Text, nullable=False),  # where to, as JSON
    Column("quiet", Text),  # quiet hours, as JSON
    Column("enabled", Boolean, nullable=False),
    Column("created", Double, nullable=False),
)

notices = Table(  # what was told, and what still waits to be: a row a channel
    "notices",
    metadata,
    Column("id", Id, primary_key=True),
    Column("rule", String(32), nullable=False),
    Column("rule_name", String(250), nullable=False),
    Column("channel", String(32), nullable=False),
    Column("channel_name", String(250), nullable=False),
    Column("key", String(500), nullable=False),
    Column("group", String(500), nullable=False),
    Column("run_id", String(64)),
    Column("level", String(16), nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("due", Double),  # when it is tried next; null: it was sent, or given up
    Column("bundle", String(64)),  # those that were once tried in one message stay together
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("sent", Double),
    Column("error", Text, nullable=False, server_default=""),  # of the last try
    UniqueConstraint("rule", "channel", "key"),
)
Index("ix_notices_due", notices.c.due)
