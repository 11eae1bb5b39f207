"""Which token a session was made from: it dies with it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("parent", sa.String(length=32), nullable=True))
