"""Tables of artifacts, logged models, and the inputs and outputs of runs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, String, Table, Text, text

from onward.tracker.schema.base import Id, metadata

artifacts = Table(
    "artifacts",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("path", String(1000), primary_key=True),
    Column("kind", String(64), nullable=False, server_default=""),
    Column("bytes", BigInteger),
    Column("sha256", String(64)),
    Column("stored", Boolean, nullable=False, server_default=text("false")),  # we have the bytes; else only told of
    Column("created", Double, nullable=False),
)

models = Table(
    "models",
    metadata,
    Column("id", String(64), primary_key=True),  # m-…
    Column("experiment", ForeignKey("experiments.id"), nullable=False, index=True),
    Column("run", ForeignKey("runs.id", ondelete="SET NULL"), index=True),
    Column("name", String(500), nullable=False),
    Column("kind", String(250), nullable=False, server_default=""),
    Column("status", String(64), nullable=False),
    Column("status_message", Text, nullable=False, server_default=""),
    Column("artifact_location", Text, nullable=False, server_default=""),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("archived", Double),
)

model_params = Table(
    "model_params",
    metadata,
    Column("model", ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("value", Text, nullable=False),
)

model_tags = Table(
    "model_tags",
    metadata,
    Column("model", ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("value", Text, nullable=False),
)

model_metrics = Table(
    "model_metrics",
    metadata,
    Column("id", Id, primary_key=True),
    Column("model", ForeignKey("models.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("key", String(250), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("value", Double),  # null for NaN
    Column("run", ForeignKey("runs.id", ondelete="CASCADE")),
    Column("dataset", String(250)),
    Column("dataset_digest", String(250)),
)

inputs = Table(
    "inputs",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(16), primary_key=True),  # dataset, model
    Column("name", String(500), primary_key=True),
    Column("digest", String(250), primary_key=True),
    Column("source_type", String(250), nullable=False, server_default=""),
    Column("source", Text, nullable=False, server_default=""),
    Column("schema", Text),
    Column("profile", Text),
    Column("tags", Text, nullable=False, server_default="{}"),
)

outputs = Table(
    "outputs",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("model", String(64), primary_key=True),
    Column("step", BigInteger, nullable=False, server_default="0"),
)
