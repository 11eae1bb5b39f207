"""Whether a database can be at the place that was named: looked at before anything there is touched, and told in words."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import sqlite3
from pathlib import Path

from sqlalchemy import URL, exc, make_url

from onward.errors import InvalidInput, StorageError, StorageUnavailable
from onward.schedulers.state_folder import STATE_HINT

_ADDRESS = "write postgresql://user@host/name, or a path"
_SCHEME = re.compile(r"(?:postgres|postgresql|mysql|mariadb|sqlite|mssql|oracle)(?:\+\w+)?:", re.IGNORECASE)
_OURS = {"alembic_version", "store", "series"}


def address_of(text: str) -> URL:
    """A PostgreSQL address, taken apart. What cannot be one is not repeated whole: a password may stand in it."""
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError) as error:
        why = "its port is not a number" if isinstance(error, ValueError) else "it cannot be read"
        raise InvalidInput(f"{without_password(text)!r} is not a database address: {why}", hint=_ADDRESS) from error
    if url.drivername == "sqlite":
        raise InvalidInput(f"{text} names an SQLite file by an address", hint=f"give only its path: --db {url.database or 'onward.db'}")
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise InvalidInput(f"{url.drivername} databases are not supported", hint="give a path (SQLite) or postgresql://user@host/name")
    if (url.host or "").strip("[]") != (url.host or "") or "@" in (url.host or "") or not 0 < (url.port or 5432) < 65536:
        shown = without_password(text)
        raise InvalidInput(f"{shown!r} is not a database address: host or port is wrong", hint=f"{_ADDRESS}; %40 for an @ in a password")
    return url


def without_password(text: str) -> str:
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", text)


def check_path(path: Path) -> None:
    """A file that is ours, or that is not there yet, in a folder that we may write."""
    odd = next((part for part in path.parts if _SCHEME.match(part)), None)
    if odd:
        raise InvalidInput(f"the database {odd}… is neither a path nor an address", hint=_ADDRESS)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a database", hint=f"name a file in it: --db {path / 'onward.db'}")
    folder = next(one for one in path.parents if one.exists())
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is a file, so {path} cannot be created", hint="choose another place with --db")
    for path_or_folder in (folder, path):
        if path_or_folder.exists() and not os.access(path_or_folder, os.W_OK):
            raise StorageError(
                f"{path_or_folder} cannot be written by {getpass.getuser()}, so the database {path} cannot be stored there",
                hint=f"choose another place with --db, or {STATE_HINT}; SQLite also writes next to its file",
            )
    if path.exists():
        _check_ours(path)


def _check_ours(path: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError:  # busy, or its log needs mending: whoever opens it will see
        return
    except sqlite3.DatabaseError as error:
        if "malformed" in str(error):
            hint = "use a backup with --db, or recover what is possible with `sqlite3 FILE .recover`; this file is left unchanged"
            raise StorageError(f"the database {path} is damaged: {error}", hint=hint) from error
        raise InvalidInput(
            f"{path} is not an SQLite database: {error}", hint="name another file, or one that does not exist yet"
        ) from error
    if found and not found >= _OURS:
        names = ", ".join(sorted(found - {"alembic_version"})[:4])
        hint = "name another file, or one that does not exist yet"
        if {"experiments", "latest_metrics"} <= found:
            hint = f"it looks like MLflow's: `onward import mlflow {path}` imports it"
        raise InvalidInput(f"{path} is another program's database (tables {names}), so it is left unchanged", hint=hint)


def with_connection_hint(error: StorageUnavailable, url: URL) -> StorageUnavailable:
    """The same, for somebody who has just typed the address."""
    text = error.message.lower()
    shown = url.set(drivername="postgresql").render_as_string(hide_password=True)
    if "does not exist" in text and "database" in text:
        hint = f"make it: createdb {url.database or ''}".rstrip() + "; or name another in the address"
    elif "authentication" in text or "password" in text or "role" in text:
        hint = "check user and password in the address; ~/.pgpass may contain the password"
    else:
        hint = f"check that PostgreSQL is running, and that host and port are right: psql {shown}"
    return StorageUnavailable(error.message, hint=hint)
