"""Params and tags found by key and run at once: a database that has not counted its rows yet takes the right index all the same."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for table in ("params", "tags"):
        op.drop_index(op.f(f"ix_{table}_key"), table_name=table)
        op.create_index(op.f(f"ix_{table}_key_run"), table, ["key", "run"], unique=False)
