"""Tables of what was taken in: which records, how far which file was read, pushed events, hints, owners and unreadable folders."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, SmallInteger, String, Table, Text

from onward.tracker.schema.base import metadata

events = Table(  # journal lines that were pushed: of a run whose folder nobody here can read
    "events",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("file", String(250), primary_key=True),
    Column("offset", BigInteger, primary_key=True),
    Column("line", Text, nullable=False),
)

writers = Table(
    "writers",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("leg", Integer, primary_key=True),
    Column("writer", String(250), primary_key=True),
    Column("life", Double, primary_key=True),  # when its record 0 was written: a process number may come twice
    Column("seen", Text, nullable=False),  # sequence numbers taken, as ranges: 0-999,1001-1005
)

positions = Table(
    "positions",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("file", String(500), primary_key=True),  # spool/leg-0001.train-17.jsonl
    Column("offset", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),  # when it was last looked at
    Column("head", String(80), nullable=False, server_default=""),  # length and digest of its beginning
    Column("life", Double),
)

event_series = Table(  # metrics that only TensorBoard's files have: one that others log too is theirs
    "event_series",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("points", BigInteger, nullable=False),  # that the series had when its files were last read
)

hints = Table(  # ids of scheduler events that were taken, so that none is taken twice
    "hints",
    metadata,
    Column("id", String(250), primary_key=True),
    Column("at", Double, nullable=False, index=True),
    Column("cluster", String(250), nullable=False, server_default=""),
    Column("job", String(250), nullable=False, server_default=""),
    Column("text", Text, nullable=False, server_default=""),
    Column("taken", SmallInteger, nullable=False, server_default="0"),
)

owners = Table(  # who owned a run's folder when it was first seen
    "owners",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("uid", BigInteger, nullable=False),
)

quarantine = Table(  # folders under the roots that cannot be read as runs
    "quarantine",
    metadata,
    Column("folder", String(1000), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("since", Double, nullable=False),
)
