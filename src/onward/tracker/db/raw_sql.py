"""The few statements that every point passes through, handed to the driver as they are: SQLAlchemy around each costs more than SQLite.

They run inside a transaction of the writer's (`begin`, `commit`), in which SQLAlchemy's own statements may run too. Errors are
SQLAlchemy's, whichever way a statement went.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, exc

_BEGIN = "BEGIN IMMEDIATE"


@cache
def _spelled(text: str) -> str:
    return text.replace("?", "%s")


def own(connection: Connection) -> None:
    """Take SQLite's connection out of the pool, for a writer: it waits for no lock, `begin` does."""
    connection.detach()
    execute(connection, "PRAGMA busy_timeout = 0")


def begin(connection: Connection, *, patience: float = 0.0) -> bool:
    """Begin to write, unless that has been done. False: another program writes to this file, all these seconds."""
    file = _file(connection)
    if file is None:
        connection.begin()
        return True
    until, wait = time.monotonic() + patience, 0.001
    while not file.in_transaction:
        try:
            file.execute(_BEGIN)
        except sqlite3.Error as error:
            if "locked" not in str(error):
                raise _theirs(_BEGIN, (), error) from error
            if time.monotonic() >= until:
                return False
            time.sleep(wait)
            wait = min(2 * wait, 0.05)
    return True


def in_transaction(connection: Connection) -> bool:
    """SQLite's own word; SQLAlchemy knows only what it has begun itself."""
    file = _file(connection)
    return file is not None and file.in_transaction


def commit(connection: Connection) -> None:
    file = _file(connection)
    if file is None or connection.in_transaction():  # SQLAlchemy has joined in
        connection.commit()
    else:
        try:
            file.commit()
        except sqlite3.Error as error:
            raise _theirs("COMMIT", (), error) from error


def rollback(connection: Connection) -> None:
    """Of a file's transaction that nothing has been done in."""
    file = _file(connection)
    if file is not None:
        file.rollback()


def fetch(connection: Connection, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of the answer. Parameters are `?`, whatever the driver's own spelling."""
    file = _file(connection)
    if file is None:
        return [tuple(row) for row in connection.exec_driver_sql(_spelled(text), tuple(values))]
    try:
        return file.execute(text, values).fetchall()
    except sqlite3.Error as error:
        raise _theirs(text, values, error) from error


def execute(connection: Connection, text: str) -> None:
    file = _file(connection)
    if file is None:
        connection.exec_driver_sql(text)
        return
    try:
        file.execute(text)
    except sqlite3.Error as error:
        raise _theirs(text, (), error) from error


def execute_many(connection: Connection, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    file = _file(connection)
    if file is None:
        connection.exec_driver_sql(_spelled(text), list(rows))
        return
    try:
        file.executemany(text, rows)
    except sqlite3.Error as error:
        raise _theirs(text, rows, error) from error


def _file(connection: Connection) -> sqlite3.Connection | None:
    """SQLite's own connection; None: PostgreSQL, where the way to the server costs more than SQLAlchemy."""
    own = connection.connection.dbapi_connection
    return own if isinstance(own, sqlite3.Connection) else None


def _theirs(text: str, values: Any, error: sqlite3.Error) -> BaseException:
    """An error of SQLite's as SQLAlchemy tells it."""
    return exc.DBAPIError.instance(text, values, error, sqlite3.Error)


@cache
def marks(count: int) -> str:
    """`?, ?, ?` for so many values."""
    return ", ".join("?" * count)


@cache
def names(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def insert_into(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({names(columns)}) VALUES ({marks(len(columns))})"


def update_by_id(table: str, columns: Sequence[str]) -> str:
    """Its parameters: the columns, then the id."""
    return f"UPDATE {table} SET " + ", ".join(f'"{name}" = ?' for name in columns) + " WHERE id = ?"
