"""The first tables."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("artifact_location", sa.Text(), server_default="", nullable=False),
        sa.Column("archived", sa.Double(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("updated", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiments")),
        sa.UniqueConstraint("name", name=op.f("uq_experiments_name")),
    )
    op.create_table(
        "hints",
        sa.Column("id", sa.String(length=250), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("cluster", sa.String(length=250), server_default="", nullable=False),
        sa.Column("job", sa.String(length=250), server_default="", nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("taken", sa.SmallInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hints")),
    )
    op.create_index(op.f("ix_hints_at"), "hints", ["at"], unique=False)
    op.create_table(
        "settings",
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_settings")),
    )
    op.create_table(
        "store",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_store")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=250), server_default="", nullable=False),
        sa.Column("rights", sa.String(length=16), server_default="write", nullable=False),
        sa.Column("run", sa.String(length=64), nullable=True),
        sa.Column("cluster", sa.String(length=250), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=True),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.Column("last_used", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_table(
        "experiment_tags",
        sa.Column("experiment", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"], name=op.f("fk_experiment_tags_experiment"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("experiment", "key", name=op.f("pk_experiment_tags")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("hex_id", sa.String(length=32), nullable=False),
        sa.Column("experiment", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("user", sa.String(length=250), server_default="", nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("identity", sa.String(length=500), nullable=True),
        sa.Column("folder", sa.Text(), nullable=True),
        sa.Column("cluster", sa.String(length=250), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("started", sa.Double(), nullable=True),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("updated", sa.Double(), nullable=False),
        sa.Column("archived", sa.Double(), nullable=True),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("leg", sa.Integer(), server_default="0", nullable=False),
        sa.Column("details", sa.Text(), server_default="{}", nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"], name=op.f("fk_runs_experiment")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("hex_id", name=op.f("uq_runs_hex_id")),
        sa.UniqueConstraint("identity", name=op.f("uq_runs_identity")),
        sa.UniqueConstraint("run_id", name=op.f("uq_runs_run_id")),
    )
    op.create_index("ix_runs_created", "runs", ["created"], unique=False)
    op.create_index(op.f("ix_runs_experiment"), "runs", ["experiment"], unique=False)
    op.create_index("ix_runs_version", "runs", ["version"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("path", sa.String(length=1000), nullable=False),
        sa.Column("kind", sa.String(length=64), server_default="", nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("stored", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_artifacts_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "path", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "events",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("file", sa.String(length=250), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_events_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "file", "offset", name=op.f("pk_events")),
    )
    op.create_table(
        "inputs",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("digest", sa.String(length=250), nullable=False),
        sa.Column("source_type", sa.String(length=250), server_default="", nullable=False),
        sa.Column("source", sa.Text(), server_default="", nullable=False),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("profile", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), server_default="{}", nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_inputs_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "kind", "name", "digest", name=op.f("pk_inputs")),
    )
    op.create_table(
        "legs",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("leg", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(length=250), nullable=True),
        sa.Column("cluster", sa.String(length=250), nullable=True),
        sa.Column("state", sa.String(length=16), server_default="running", nullable=False),
        sa.Column("end", sa.String(length=16), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("submitted", sa.Double(), nullable=True),
        sa.Column("started", sa.Double(), nullable=True),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("resumed_step", sa.BigInteger(), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("details", sa.Text(), server_default="{}", nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_legs_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "leg", name=op.f("pk_legs")),
    )
    op.create_index("ix_legs_job", "legs", ["job"], unique=False)
    op.create_table(
        "models",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("experiment", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("kind", sa.String(length=250), server_default="", nullable=False),
        sa.Column("status", sa.String(length=64), nullable=False),
        sa.Column("status_message", sa.Text(), server_default="", nullable=False),
        sa.Column("artifact_location", sa.Text(), server_default="", nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("updated", sa.Double(), nullable=False),
        sa.Column("archived", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"], name=op.f("fk_models_experiment")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_models_run"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
    )
    op.create_index(op.f("ix_models_experiment"), "models", ["experiment"], unique=False)
    op.create_index(op.f("ix_models_run"), "models", ["run"], unique=False)
    op.create_table(
        "notes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("author", sa.String(length=250), server_default="", nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_notes_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notes")),
    )
    op.create_index(op.f("ix_notes_run"), "notes", ["run"], unique=False)
    op.create_table(
        "outputs",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("step", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_outputs_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "model", name=op.f("pk_outputs")),
    )
    op.create_table(
        "params",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("leg", sa.Integer(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_params_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "key", "leg", name=op.f("pk_params")),
    )
    op.create_table(
        "positions",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("file", sa.String(length=500), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(length=80), server_default="", nullable=False),
        sa.Column("life", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_positions_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "file", name=op.f("pk_positions")),
    )
    op.create_table(
        "series",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("leg", sa.Integer(), nullable=False),
        sa.Column("leg_first", sa.BigInteger(), nullable=False),
        sa.Column("top_step", sa.BigInteger(), nullable=False),
        sa.Column("top_time", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("last_time", sa.BigInteger(), nullable=True),
        sa.Column("last_value", sa.Double(), nullable=True),
        sa.Column("min_value", sa.Double(), nullable=True),
        sa.Column("min_step", sa.BigInteger(), nullable=True),
        sa.Column("max_value", sa.Double(), nullable=True),
        sa.Column("max_step", sa.BigInteger(), nullable=True),
        sa.Column("loose", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_series_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("run", "key", name=op.f("uq_series_run_key")),
    )
    op.create_index("ix_series_key_last", "series", ["key", "last_value", "run"], unique=False)
    op.create_index(
        "ix_series_loose", "series", ["loose"], unique=False, postgresql_where=sa.text("loose > 1"), sqlite_where=sa.text("loose > 1")
    )
    op.create_table(
        "tags",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_tags_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "key", name=op.f("pk_tags")),
    )
    op.create_table(
        "writers",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("leg", sa.Integer(), nullable=False),
        sa.Column("writer", sa.String(length=250), nullable=False),
        sa.Column("life", sa.Double(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_writers_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "leg", "writer", "life", name=op.f("pk_writers")),
    )
    op.create_table(
        "chunks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("series", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("leg", sa.Integer(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("full", sa.Boolean(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("first_time", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("last_time", sa.BigInteger(), nullable=False),
        sa.Column("last_value", sa.Double(), nullable=True),
        sa.Column("bad", sa.Integer(), nullable=False),
        sa.Column("min_value", sa.Double(), nullable=True),
        sa.Column("min_step", sa.BigInteger(), nullable=True),
        sa.Column("max_value", sa.Double(), nullable=True),
        sa.Column("max_step", sa.BigInteger(), nullable=True),
        sa.Column("summary", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["series"], ["series.id"], name=op.f("fk_chunks_series"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
    )
    op.create_index("ix_chunks_series_leg_first", "chunks", ["series", "leg", "first_step"], unique=False)
    op.create_table(
        "model_metrics",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("dataset", sa.String(length=250), nullable=True),
        sa.Column("dataset_digest", sa.String(length=250), nullable=True),
        sa.ForeignKeyConstraint(["model"], ["models.id"], name=op.f("fk_model_metrics_model"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_model_metrics_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_metrics")),
    )
    op.create_index(op.f("ix_model_metrics_model"), "model_metrics", ["model"], unique=False)
    op.create_table(
        "model_params",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.id"], name=op.f("fk_model_params_model"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model", "key", name=op.f("pk_model_params")),
    )
    op.create_table(
        "model_tags",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=250), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.id"], name=op.f("fk_model_tags_model"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model", "key", name=op.f("pk_model_tags")),
    )
    op.execute(sa.text("INSERT INTO store (id, version) VALUES (1, 1)"))
    now = time.time()
    default = sa.text("INSERT INTO experiments (id, name, artifact_location, created, updated) VALUES (0, 'Default', '', :now, :now)")
    op.get_bind().execute(default, {"now": now})


def downgrade() -> None:
    raise NotImplementedError("the first tables have none before them: restore a backup")
