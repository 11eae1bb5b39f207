"""Tables of metrics: series and their chunks, tails of wide records."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from onward.tracker.schema.base import Id, metadata

series = Table(
    "series",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("key", String(250), nullable=False),
    Column("points", BigInteger, nullable=False),  # all, superseded ones too
    Column("leg", Integer, nullable=False),  # the newest that has points here
    Column("leg_first", BigInteger, nullable=False),  # the lowest step of that leg
    Column("top_step", BigInteger, nullable=False),  # the highest (step, time) of all points
    Column("top_time", BigInteger, nullable=False),
    Column("last_step", BigInteger),  # of the points that show: the highest (step, time, value)
    Column("last_time", BigInteger),
    Column("last_value", Double),  # null for NaN
    Column("min_value", Double),  # the lowest and highest finite ones that show
    Column("min_step", BigInteger),
    Column("max_value", Double),
    Column("max_step", BigInteger),
    Column("loose", Integer, nullable=False),  # chunks that are not full
    Column("version", BigInteger, nullable=False),
    UniqueConstraint("run", "key"),
)
Index("ix_series_loose", series.c.loose, postgresql_where=text("loose > 1"), sqlite_where=text("loose > 1"))
Index("ix_series_key_last", series.c.key, series.c.last_value, series.c.run)  # answers metrics.loss < 0.5 by itself

chunks = Table(
    "chunks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("series", ForeignKey("series.id", ondelete="CASCADE"), nullable=False),
    Column("leg", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("full", Boolean, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("first_time", BigInteger, nullable=False),  # of the first in the order of (step, time)
    Column("last_step", BigInteger, nullable=False),
    Column("last_time", BigInteger, nullable=False),
    Column("last_value", Double),  # null for NaN
    Column("bad", Integer, nullable=False),  # NaN and ±Inf among them
    Column("min_value", Double),
    Column("min_step", BigInteger),
    Column("max_value", Double),
    Column("max_step", BigInteger),
    Column("summary", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
Index("ix_chunks_series_leg_first", chunks.c.series, chunks.c.leg, chunks.c.first_step)

tail_keys = Table(  # metrics of wide records, in their order
    "tail_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("names", Text, nullable=False),  # as JSON
    UniqueConstraint("run", "digest"),
)

tails = Table(  # wide records that are not yet in chunks: see `wide.tails`
    "tails",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("leg", Integer, nullable=False),
    Column("keys", ForeignKey("tail_keys.id", ondelete="CASCADE"), nullable=False),
    Column("records", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("at", Double, nullable=False),  # when it was stored
    Column("data", LargeBinary, nullable=False),  # steps, times, values record by record
)
