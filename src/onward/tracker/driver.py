"""The few statements that every point passes through, as the driver takes them: handling of parameters would cost more than SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, CursorResult


@cache
def _spelled(text: str, style: str) -> str:
    return text if style == "qmark" else text.replace("?", "%s")


def execute(connection: Connection, text: str, values: Sequence[Any] = ()) -> CursorResult[Any]:
    """Parameters are `?`, whatever the driver's own spelling."""
    return connection.exec_driver_sql(_spelled(text, connection.dialect.paramstyle), tuple(values))


def execute_many(connection: Connection, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        connection.exec_driver_sql(_spelled(text, connection.dialect.paramstyle), list(rows))


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
