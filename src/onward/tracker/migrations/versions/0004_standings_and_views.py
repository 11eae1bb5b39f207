"""What a list says of a run in one line; named views; params and tags found by their keys.

Journals of runs whose folders we see are read once more, so that older runs have a standing too.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "standings",
        sa.Column("run", number, nullable=False),
        sa.Column("why", sa.Text(), server_default="", nullable=False),
        sa.Column("next", sa.Text(), server_default="", nullable=False),
        sa.Column("legs_done", sa.Integer(), server_default="0", nullable=False),
        sa.Column("legs_max", sa.Integer(), nullable=True),
        sa.Column("saved_step", sa.BigInteger(), nullable=True),
        sa.Column("saved_at", sa.Double(), nullable=True),
        sa.Column("queued_at", sa.Double(), nullable=True),
        sa.Column("begun_at", sa.Double(), nullable=True),
        sa.Column("gpu_use", sa.Double(), nullable=True),
        sa.Column("gpu_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_standings_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_standings")),
    )
    op.create_table(
        "views",
        sa.Column("id", number, nullable=False),
        sa.Column("owner", sa.String(length=250), nullable=False),
        sa.Column("page", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=250), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("updated", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_views")),
        sa.UniqueConstraint("owner", "page", "name", name=op.f("uq_views_owner_page_name")),
    )
    op.create_index(op.f("ix_params_key"), "params", ["key"], unique=False)
    op.create_index(op.f("ix_tags_key"), "tags", ["key"], unique=False)
    op.execute("DELETE FROM positions WHERE file LIKE 'journal/%' AND run IN (SELECT id FROM runs WHERE folder IS NOT NULL)")
