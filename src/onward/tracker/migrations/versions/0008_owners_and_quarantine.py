"""A run is bound to the owner of its folder; folders that cannot be read are kept with the reason."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "owners",
        sa.Column("run", number, nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_owners_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_owners")),
    )
    op.create_table(
        "quarantine",
        sa.Column("folder", sa.String(length=1000), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("folder", name=op.f("pk_quarantine")),
    )
