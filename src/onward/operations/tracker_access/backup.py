"""A copy of the tracker while it is at work: the database as of one moment, and the files beside it. It is there whole, or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from onward.errors import Conflict, NotFound, StorageError
from onward.operations.tracker_access.location import TrackerLocation
from onward.schedulers.command import run_command

_PARTIAL = ".partial"


def backup(location: TrackerLocation, folder: Path) -> dict[str, Any]:
    """Copy everything into a new folder; `onward up --db FOLDER/tracker.db` serves it. What it says is what was done."""
    folder = folder.absolute()
    if folder.exists():
        raise Conflict(f"{folder} already exists", hint="name a folder that does not exist yet")
    partial = folder.with_name(f".{folder.name}{_PARTIAL}")
    shutil.rmtree(partial, ignore_errors=True)  # left by one that was killed
    before = os.umask(0o077)
    try:
        partial.mkdir(parents=True)
        database = _sqlite(location.path, partial / "tracker.db") if location.path else _postgres(location, partial)
        requests = Path(location.requests) if location.path else None  # of the gateway, where there is one; else among the tables
        if requests and requests.is_file():
            _sqlite(requests, partial / "tracker.requests.db")
        files = _files(location.files, partial / "tracker.files")
        record = {"schema": 1, "at": time.time(), "database": database, "files": files}
        (partial / "backup.json").write_text(json.dumps(record, indent=2) + "\n")
        os.rename(partial, folder)
    except OSError as error:
        raise StorageError(f"the backup into {folder} failed: {error}", hint="is there room, and does the folder belong to you?") from error
    finally:
        os.umask(before)
        shutil.rmtree(partial, ignore_errors=True)
    return {**record, "folder": str(folder)}


def _sqlite(path: Path, target: Path) -> dict[str, Any]:
    if not path.is_file():
        raise NotFound(f"there is no database {path}", hint="name the server's with --db")
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as source,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy, pages=4096, sleep=0.0)  # pages at a time, so that the server can write between
            (said,) = copy.execute("PRAGMA quick_check").fetchone()
    except sqlite3.Error as error:
        raise StorageError(f"{path} could not be copied: {error}") from error
    if said != "ok":
        raise StorageError(f"the copy of {path} is damaged: {said}", hint="is the disk healthy?")
    return {"name": target.name, "bytes": target.stat().st_size}


def _postgres(location: TrackerLocation, into: Path) -> dict[str, Any]:
    program = shutil.which("pg_dump")
    if program is None:
        raise NotFound("pg_dump is not on the PATH", hint="install PostgreSQL's client, or run the backup where the database is")
    target = into / "tracker.dump"
    address, password = _without_password(location.db)
    extra = {"PGPASSWORD": password} if password else {}  # not an argument: those are for everyone to see
    answer = run_command([program, "--format=custom", f"--file={target}", f"--dbname={address}"], timeout=3600, extra=extra)
    if answer.code:
        raise StorageError(
            f"pg_dump failed: {answer.err.splitlines()[0] if answer.err else answer.code}", hint="does its version match the server's?"
        )
    return {"name": target.name, "bytes": target.stat().st_size}


def _without_password(url: str) -> tuple[str, str]:
    parts = urlsplit(url.replace("postgresql+psycopg://", "postgresql://"))
    user, _, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=f"{name}@{host}" if name else host)), unquote(password)


def _files(source: Path, target: Path) -> dict[str, Any]:
    count = size = 0
    for folder, names, files in os.walk(source):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_symlink() or name.endswith(".part"):
                continue
            to = target / path.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                shutil.copy2(path, to)
                count += 1
                size += to.stat().st_size
    return {"count": count, "bytes": size}
