"""The few statements that every point passes through, handed to the driver as they are: SQLAlchemy around each costs more than SQLite.

They run inside a transaction that SQLAlchemy has begun. Errors are its own, whichever way a statement went.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, exc

T = TypeVar("T")


@cache
def _spelled(text: str) -> str:
    return text.replace("?", "%s")


def fetch(connection: Connection, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of the answer. Parameters are `?`, whatever the driver's own spelling."""
    file = _file(connection)
    if file is None:
        return [tuple(row) for row in connection.exec_driver_sql(_spelled(text), tuple(values))]
    return _wrapped(text, values, lambda: file.execute(text, values).fetchall())


def execute(connection: Connection, text: str) -> None:
    file = _file(connection)
    if file is None:
        connection.exec_driver_sql(text)
    else:
        _wrapped(text, (), lambda: file.execute(text))


def execute_many(connection: Connection, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    file = _file(connection)
    if file is None:
        connection.exec_driver_sql(_spelled(text), list(rows))
    else:
        _wrapped(text, rows, lambda: file.executemany(text, rows))


def _file(connection: Connection) -> sqlite3.Connection | None:
    """SQLite's own connection; None: PostgreSQL, where the way to the server costs more than SQLAlchemy."""
    own = connection.connection.dbapi_connection
    return own if isinstance(own, sqlite3.Connection) else None


def _wrapped(text: str, values: Any, act: Callable[[], T]) -> T:
    try:
        return act()
    except sqlite3.Error as error:
        raise exc.DBAPIError.instance(text, values, error, sqlite3.Error) from error


def marks(count: int) -> str:
    """`?, ?, ?` for so many values."""
    return ", ".join("?" * count)


def names(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def insert_into(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({names(columns)}) VALUES ({marks(len(columns))})"


def update_by_id(table: str, columns: Sequence[str]) -> str:
    """Its parameters: the columns, then the id."""
    return f"UPDATE {table} SET " + ", ".join(f'"{name}" = ?' for name in columns) + " WHERE id = ?"
