"""Which runs a pipeline queued: read once from the specs that are stored with the runs. Whether a run's newest leg is at work."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_SPECS = sa.text("SELECT id, details FROM runs WHERE details LIKE '%\"member\": {%'")


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("standings", sa.Column("trains", sa.Boolean(), nullable=True))
    memberships = op.create_table(
        "memberships",
        sa.Column("run", number, nullable=False),
        sa.Column("pipeline", sa.String(length=600), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_memberships_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", name=op.f("pk_memberships")),
    )
    op.create_index("ix_memberships_pipeline_run", "memberships", ["pipeline", "run"], unique=False)
    found = [{"run": run, "pipeline": folder[:600]} for run, details in op.get_bind().execute(_SPECS) if (folder := _pipeline(details))]
    if found:
        op.bulk_insert(memberships, found)


def _pipeline(details: str) -> str | None:
    try:
        folder = json.loads(details)["spec"]["member"]["pipeline"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return folder if isinstance(folder, str) and "\x00" not in folder else None
