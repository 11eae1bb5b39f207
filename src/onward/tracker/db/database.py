"""Opening the database: a file on local disk (SQLite), or PostgreSQL by its address."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc

from onward.errors import InvalidInput, OnwardError, StorageError, StorageFull, StorageUnavailable
from onward.tracker.db.location import address_of, check_path
from onward.tracker.db.raw_sql import execute, fetch, in_transaction

_NETWORK = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "panfs", "pvfs2", "orangefs", "wekafs"}
_LOCAL_FUSE = {"fuse.fuse-overlayfs", "fuseblk"}
_MOUNTS = Path("/proc/self/mountinfo")
_PATIENCE_MS = 30_000
_LEAST_ROOM = 1 << 18  # bytes: a log that grows takes as much before anything is refused
_MAKE_ROOM = "make room: Onward continues by itself; nothing that was acknowledged is lost"


@dataclass(frozen=True, kw_only=True)
class Database:
    """An open database. Readers take connections from a pool; whoever writes goes through `writer.Writer`."""

    engine: Engine
    path: Path | None  # of the file; None: PostgreSQL
    settlers: list[Callable[[], None]] = field(default_factory=list)  # settle what waits in tails: the tracker's, where it has one

    @property
    def is_file(self) -> bool:
        return self.path is not None

    @property
    def words(self) -> str:
        """For messages: without a password."""
        return str(self.path) if self.path else self.engine.url.render_as_string(hide_password=True)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection whose queries all see one moment (SQLite) or what is committed (PostgreSQL)."""
        with self.translated(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def reading_points(self) -> Iterator[Connection]:
        """The same for whoever reads what series rows and chunks say: what waits in tails is settled before."""
        with self.reading() as connection:
            if not fetch(connection, "SELECT 1 FROM tails LIMIT 1"):
                yield connection
                return
        for settle in self.settlers:
            with contextlib.suppress(OnwardError):  # nothing can be stored now: what was settled before can be read all the same
                settle()
        with self.reading() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of one's own, committed at the end of the block: for stores that several processes write to, and seldom."""
        with self.translated(), self.engine.connect().execution_options(onward_writes=True) as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """What the driver raises, in our words."""
        try:
            yield
        except exc.DBAPIError as error:
            raise translate(error, self.words) from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise unsupported_value(error) from error
        except exc.TimeoutError as error:
            raise StorageUnavailable(f"{self.words} has no free connection", hint="it is busy; try again in a few seconds") from error

    def must_have_room(self) -> None:
        """Of a file: StorageFull where its disk has none left. A server looks after its own."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):
            disk = os.statvfs(self.path.parent)
            if disk.f_bavail * disk.f_frsize < _LEAST_ROOM:
                raise StorageFull(f"there is no room for {self.words}: its disk is full", hint=_MAKE_ROOM)

    def close(self) -> None:
        self.engine.dispose()


def open_database(address: str | Path) -> Database:
    """`place` is a path, or an address such as postgresql://user@host/onward."""
    checked = check_location(str(address))
    return open_file(checked) if isinstance(checked, Path) else open_address(checked)


def check_location(text: str) -> Path | URL:
    """Where it is; an error where it cannot be. Nothing is touched."""
    if "://" in text:
        return address_of(text)
    path = Path(text).expanduser().resolve()  # where a link leads: SQLite's own files lie beside that
    check_local(path)
    check_path(path)
    return path


def unsupported_value(error: Exception) -> InvalidInput:
    """A value that no column takes: half a character, NUL, a number beyond 64 bits, a name too long."""
    text = str(error.orig if isinstance(error, exc.DBAPIError) else error).strip().splitlines()[0]
    return InvalidInput(f"a value cannot be stored: {text}", hint="text must be UTF-8 without NUL, numbers must fit into 64 bits")


def translate(error: exc.DBAPIError, where: str) -> OnwardError:
    if isinstance(error, exc.DataError | exc.IntegrityError):
        return unsupported_value(error)
    text = str(error.orig or error).strip().splitlines()[0]
    low = text.lower()
    if "disk is full" in low or "no space left" in low or "disk quota" in low or "could not extend file" in low:
        return StorageFull(f"there is no room for {where}: {text}", hint=_MAKE_ROOM)
    if is_away(error):
        return StorageUnavailable(f"{where} does not answer: {text}", hint="it is retried; nothing that was acknowledged is lost")
    return StorageError(f"{where} refused: {text}")


def is_away(error: exc.DBAPIError) -> bool:
    """Whether trying again can help: the server is gone, or the file is busy. SQLite calls every mistake an operational one."""
    if isinstance(error.orig, sqlite3.Error):
        return any(word in str(error.orig) for word in ("locked", "busy", "unable to open", "disk I/O error"))
    return isinstance(error, exc.OperationalError | exc.InterfaceError) or error.connection_invalidated


def file_system(path: Path) -> tuple[str, str]:
    """Type and mount point of what a path lies on; the path need not be there yet."""
    real = path.resolve()
    best = ("", "")
    try:
        lines = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return best
    for line in lines:
        left, _, right = line.partition(" - ")
        mount = left.split()[4].replace("\\040", " ")
        if (real == Path(mount) or Path(mount) in real.parents) and len(mount) >= len(best[1]):
            best = (right.split()[0], mount)
    return best


def check_local(path: Path) -> None:
    """SQLite's log does not work over a network: it may report success and lose it. Refuse such a place."""
    kind, mount = file_system(path)
    if kind in _NETWORK or (kind.startswith("fuse") and kind not in _LOCAL_FUSE):
        raise InvalidInput(
            f"{path} is on {kind} ({mount}), where a database file gets damaged",
            hint="give a path on this machine's own disk (--db /var/tmp/onward.db), or a PostgreSQL address (--db postgresql://…)",
        )


def open_file(path: Path) -> Database:
    """Of a path that was checked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent} cannot be created: {error}", hint="choose another place with --db") from error
    if sqlite3.sqlite_version_info < (3, 35):
        raise StorageError(f"this Python's SQLite is {sqlite3.sqlite_version}; 3.35 is needed", hint="use a newer Python, or PostgreSQL")
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": _PATIENCE_MS / 1000, "check_same_thread": False},
        pool_size=8,
        max_overflow=24,
        pool_use_lifo=True,
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return Database(engine=engine, path=path)


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    cursor = connection.cursor()
    (pages,) = cursor.execute("PRAGMA page_count").fetchone()
    if pages == 0:
        cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")  # can be chosen only while the file is empty
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -4000")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.execute("PRAGMA case_sensitive_like = ON")  # as everywhere else; ILIKE is for the other
    cursor.execute("PRAGMA wal_autocheckpoint = 4000")  # pages of 4 KiB
    cursor.execute("PRAGMA journal_size_limit = 67108864")
    cursor.close()


def _begin(connection: Connection) -> None:
    if in_transaction(connection):  # the writer's, which has begun already
        return
    writes = connection.get_execution_options().get("onward_writes")
    execute(connection, "BEGIN IMMEDIATE" if writes else "BEGIN")


def open_address(url: URL) -> Database:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise InvalidInput("PostgreSQL needs the psycopg package", hint="pip install 'onward[postgres]'") from error
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"), pool_size=8, max_overflow=24, pool_pre_ping=True, connect_args={"connect_timeout": 10}
    )
    event.listen(engine, "connect", _prepare_session)
    return Database(engine=engine, path=None)


def _prepare_session(connection: Any, _record: object) -> None:
    """Queries of a list are over before a compiler would be done with them."""
    connection.autocommit = True
    connection.execute("SET jit = off")
    connection.autocommit = False
