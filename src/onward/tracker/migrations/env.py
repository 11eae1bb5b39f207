"""Alembic's way in: the connection is handed over by `tracker.migrate`."""

from __future__ import annotations

from alembic import context

from onward.tracker.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
