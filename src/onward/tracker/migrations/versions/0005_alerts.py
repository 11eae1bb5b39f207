"""Alerts: rules, channels, and the notices to them; which notes of a training are alerts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "alert_rules",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=250), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("filter", sa.Text(), nullable=False),
        sa.Column("after", sa.Double(), nullable=True),
        sa.Column("channels", sa.Text(), nullable=False),
        sa.Column("lines", sa.Boolean(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_rules")),
        sa.UniqueConstraint("name", name=op.f("uq_alert_rules_name")),
    )
    op.create_table(
        "alert_channels",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=250), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("quiet", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_channels")),
        sa.UniqueConstraint("name", name=op.f("uq_alert_channels_name")),
    )
    op.create_table(
        "notices",
        sa.Column("id", number, nullable=False),
        sa.Column("rule", sa.String(length=32), nullable=False),
        sa.Column("rule_name", sa.String(length=250), nullable=False),
        sa.Column("channel", sa.String(length=32), nullable=False),
        sa.Column("channel_name", sa.String(length=250), nullable=False),
        sa.Column("key", sa.String(length=500), nullable=False),
        sa.Column("group", sa.String(length=500), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("due", sa.Double(), nullable=True),
        sa.Column("bundle", sa.String(length=64), nullable=True),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("sent", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
        sa.UniqueConstraint("rule", "channel", "key", name=op.f("uq_notices_rule_channel_key")),
    )
    op.create_index(op.f("ix_notices_due"), "notices", ["due"], unique=False)
    op.add_column("notes", sa.Column("level", sa.String(length=20), nullable=True))
