"""Making and upgrading the tables: Alembic's steps, under a lock, so that several who start at once do it once.

Alembic is imported only where there is something to do: a server that finds its tables right starts faster.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from onward.errors import StorageError
from onward.tracker.db.database import Database

HEAD = "0009"  # the newest step
_SCRIPTS = Path(__file__).parents[1] / "migrations"
_LOCK = 0x6F6E_7761_7265


def migrate(database: Database) -> None:
    with database.reading() as connection:
        if _revision(connection) == HEAD:
            return
    with alone(database), database.translated(), database.engine.connect().execution_options(onward_writes=True) as connection:
        held = _revision(connection)
        if held == HEAD:
            return
        connection.rollback()
        _upgrade(connection, held, database.words)


def _upgrade(connection: Connection, held: str | None, words: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if held is not None and held not in known:
        raise StorageError(f"{words} was created by a newer Onward (step {held})", hint="use that version, or restore a backup")
    with connection.begin():
        command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: Any = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


@contextlib.contextmanager
def alone(database: Database) -> Iterator[None]:
    """Of all who have this database open, nobody else is at it."""
    if database.path is not None:
        with database.path.with_name(f"{database.path.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    with database.engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        try:
            yield
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
