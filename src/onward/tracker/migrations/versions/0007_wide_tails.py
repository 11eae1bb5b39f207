"""Wide records wait in tails; those that run, and those of a folder, are found without looking at each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "tail_keys",
        sa.Column("id", number, nullable=False),
        sa.Column("run", number, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_tail_keys_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tail_keys")),
        sa.UniqueConstraint("run", "digest", name=op.f("uq_tail_keys_run_digest")),
    )
    op.create_table(
        "tails",
        sa.Column("id", number, nullable=False),
        sa.Column("run", number, nullable=False),
        sa.Column("leg", sa.Integer(), nullable=False),
        sa.Column("keys", number, nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_tails_run"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["keys"], ["tail_keys.id"], name=op.f("fk_tails_keys"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tails")),
    )
    op.create_index(op.f("ix_tails_run"), "tails", ["run"], unique=False)
    running = sa.text("state = 'running'")
    op.create_index("ix_runs_running", "runs", ["source"], unique=False, sqlite_where=running, postgresql_where=running)
    op.create_index(op.f("ix_runs_folder"), "runs", ["folder"], unique=False)
