"""Opening the gateway's store: a file beside the tracker's, or tables of its own in the same PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from pathlib import Path

from sqlalchemy import event, insert, inspect, select

from onward.errors import NotFound, StorageError
from onward.tracker.db.database import Database, check_local, open_address, open_file
from onward.tracker.db.location import address_of
from onward.tracker.db.migrate import alone
from onward.tracker.requests.schema import VERSION, metadata, request_store

_NONE = "`onward gateway` creates it when it starts"


def open_store(address: str | Path, *, create: bool) -> tuple[Database, bytes]:
    """The database, and the key that signs addresses. Without `create` it must be there already."""
    database = (
        open_address(address_of(str(address))) if "://" in str(address) else _file(Path(address).expanduser().resolve(), create=create)
    )
    try:
        if create:
            _make(database)
        return database, _key(database)
    except BaseException:
        database.close()
        raise


def _file(path: Path, *, create: bool) -> Database:
    check_local(path)
    if not path.exists() and not create:
        raise NotFound(f"there are no requests in {path}", hint=_NONE)
    with contextlib.suppress(OSError):  # whoever opens it says what is wrong
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # a key is in it: its owner's alone, and its log's too
    database = open_file(path)
    event.listen(database.engine, "connect", _overwrite_what_is_deleted)
    return database


def _overwrite_what_is_deleted(connection: sqlite3.Connection, _: object) -> None:
    """Secrets of requests are taken out again: not only of the table, but of the file."""
    connection.execute("PRAGMA secure_delete = ON")


def _make(database: Database) -> None:
    with alone(database), database.writing() as connection:
        if not inspect(connection).has_table(request_store.name):
            metadata.create_all(connection)
            connection.execute(insert(request_store).values(id=1, version=VERSION, key=secrets.token_hex(32)))


def _key(database: Database) -> bytes:
    with database.reading() as connection:
        if not inspect(connection).has_table(request_store.name):
            raise NotFound(f"there are no requests in {database.words}", hint=_NONE)
        held = connection.execute(select(request_store)).one()
    if held.version > VERSION:
        raise StorageError(
            f"the requests in {database.words} were stored by a newer Onward (version {held.version})",
            hint="use that version, or restore a backup",
        )
    return bytes.fromhex(held.key)
