"""Opening a store: where it may lie, who makes its tables, and what is said when it cannot be used."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import exc, make_url, text

from onward.errors import InvalidInput, OnwardError, StorageError, StorageFull, StorageUnavailable
from onward.tracker.db import database, migrate
from onward.tracker.db.location import with_connection_hint
from onward.tracker.db.raw_sql import execute_many, fetch
from onward.tracker.store import Tracker

MOUNTS = """22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 22 0:41 / /scratch\\040x rw - lustre x@tcp:/scratch rw
32 30 0:42 / /home/ann/local rw - xfs /dev/sdb rw
33 22 0:43 / /mnt/s rw - fuse.sshfs host: rw
34 22 0:44 / /mnt/o rw - fuse.fuse-overlayfs overlay rw
"""


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    monkeypatch.setattr(database, "_MOUNTS", tmp_path / "mountinfo")


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(("path", "kind"), [("/home/bob/x.db", "nfs4"), ("/scratch x/a/x.db", "lustre"), ("/mnt/s/x.db", "fuse.sshfs")])
def test_a_file_on_a_network_is_refused_with_what_to_do(path: str, kind: str) -> None:
    with pytest.raises(InvalidInput, match=kind) as raised:
        database.open_database(path)
    assert "postgresql://" in raised.value.hint


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("path", ["/var/x.db", "/home/ann/local/x.db", "/mnt/o/x.db", "/homes/x.db"])
def test_a_file_on_a_disk_of_this_machine_is_fine(path: str) -> None:
    database.check_local(Path(path))


@pytest.mark.parametrize("address", ["mysql://a@b/c", "://", "postgresql+asyncpg://x/y"])
def test_an_address_that_cannot_be_used_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        database.open_database(address)
    assert raised.value.hint


@pytest.mark.parametrize(
    "address",
    [
        *("postgresql://ann:secret@host:port/onward", "postgresql://ann:secret@host:99999/onward", "postgresql://ann:se@cret@[host/onward"),
        *("postgresql:/ann:secret@host/onward", "postgresql:ann"),
    ],
)
def test_a_malformed_address_is_told_without_its_password_and_with_a_good_one(address: str) -> None:
    with pytest.raises(InvalidInput, match="address") as raised:
        database.open_database(address)
    assert "cret" not in raised.value.message
    assert "postgresql://user@host/name" in raised.value.hint


def test_an_sqlite_address_is_answered_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as raised:
        database.open_database("sqlite:////var/lib/onward.db")
    assert "--db /var/lib/onward.db" in raised.value.hint


def test_a_password_is_never_shown() -> None:
    opened = database.open_database("postgresql://ann:secret@host/onward")
    assert "secret" not in opened.words


def test_a_folder_is_no_database_and_a_file_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder") as raised:
        database.open_database(tmp_path)
    assert str(tmp_path / "onward.db") in raised.value.hint
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is a file"):
        database.open_database(tmp_path / "file" / "x.db")


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    for tables in (["people"], ["alembic_version", "pets"]):
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for table in tables:
                connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
            connection.commit()
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match=rf"theirs.db is another program's database \(tables {tables[-1]}\)") as raised:
            Tracker.open(path)
        assert "name another file" in raised.value.hint
        assert path.read_bytes() == before
        assert [found.name for found in tmp_path.iterdir()] == ["theirs.db"]


def test_mlflows_database_is_told_how_it_is_taken_over(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        for table in ("alembic_version", "experiments", "runs", "metrics", "latest_metrics"):
            connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
        connection.commit()
    with pytest.raises(InvalidInput) as raised:
        Tracker.open(tmp_path / "mlflow.db")
    assert f"onward import mlflow {tmp_path / 'mlflow.db'}" in raised.value.hint


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("connection refused", "PostgreSQL is running"),
        ('FATAL: password authentication failed for user "ann"', "user and password"),
        ('FATAL: database "onward" does not exist', "createdb onward"),
        ('FATAL: role "ann" does not exist', "user and password"),
    ],
)
def test_a_server_that_cannot_be_reached_at_the_start_is_told_with_what_to_look_at(said: str, hint: str) -> None:
    answer = with_connection_hint(StorageUnavailable(said), make_url("postgresql+psycopg://ann:secret@host/onward"))
    assert hint in answer.hint
    assert "secret" not in answer.hint
    assert answer.message == said


def test_a_server_that_does_not_answer_is_said_so_and_may_come_back() -> None:
    with pytest.raises(StorageUnavailable, match="does not answer") as raised:
        Tracker.open("postgresql://ann@127.0.0.1:1/onward")
    assert raised.value.transient
    assert "psql postgresql://ann@127.0.0.1:1/onward" in raised.value.hint


def test_a_database_that_lost_its_end_is_damaged_not_another_thing(tmp_path: Path) -> None:
    with Tracker.open(tmp_path / "onward.db"):
        pass
    with (tmp_path / "onward.db").open("r+b") as file:
        file.truncate(100_000)
    with pytest.raises(StorageError, match="is damaged") as raised, Tracker.open(tmp_path / "onward.db"):
        pass
    assert "backup" in raised.value.hint


def test_a_file_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is a text, and a longer one than a database's head would be" * 20)
    with pytest.raises(OnwardError, match=r"x\.db"):
        Tracker.open(tmp_path / "x.db")


@pytest.mark.parametrize(
    ("words", "kind"),
    [("database or disk is full", StorageFull), ("database is locked", StorageUnavailable), ("could not extend file", StorageFull)],
)
def test_what_the_driver_says_becomes_an_error_of_ours(words: str, kind: type[StorageError]) -> None:
    said: Any = exc.OperationalError("INSERT", {}, Exception(words))
    assert isinstance(database.translate(said, "x.db"), kind)


def test_a_file_is_written_with_a_log_and_flushed_at_every_commit(tmp_path: Path) -> None:
    with Tracker.open(tmp_path / "deep" / "x.db") as tracker, tracker.reading() as connection:
        entries = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys", "auto_vacuum")
        ]
    assert entries == ["wal", 2, 1, 2]


def test_the_newest_step_is_the_one_that_is_looked_for() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parents[1] / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == migrate.HEAD


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with Tracker.open(tmp_path / "x.db") as tracker:
        tracker.write(lambda batch: batch.connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(StorageError, match="newer Onward"):
        Tracker.open(tmp_path / "x.db")


def test_processes_that_start_at_once_make_the_tables_once(tmp_path: Path) -> None:
    code = f"from onward.tracker.store import Tracker; Tracker.open({str(tmp_path / 'x.db')!r}).close()"
    children = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(6)]
    assert [(child.communicate(timeout=120)[1], child.returncode) for child in children] == [("", 0)] * 6


def test_an_open_store_needs_no_alembic(tmp_path: Path) -> None:
    Tracker.open(tmp_path / "x.db").close()
    code = f"import sys; from onward.tracker.store import Tracker; Tracker.open({str(tmp_path / 'x.db')!r}).close()"
    code += "; print('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout == "False\n"


def test_what_the_driver_refuses_inside_a_transaction_becomes_an_error_of_ours(tmp_path: Path) -> None:
    with Tracker.open(tmp_path / "o.db") as tracker:
        with pytest.raises(StorageError, match="no such table"):
            tracker.write(lambda batch: fetch(batch.connection, "SELECT * FROM no_table"))
        with pytest.raises(StorageError, match="no such table"):
            tracker.write(lambda batch: execute_many(batch.connection, "INSERT INTO no_table VALUES (?)", [(1,)]))


def test_a_writer_goes_on_after_a_transaction_that_failed(tmp_path: Path) -> None:
    with Tracker.open(tmp_path / "o.db") as tracker:
        before = tracker.version()
        with pytest.raises(StorageError):
            tracker.write(lambda batch: fetch(batch.connection, "SELECT * FROM no_table"))
        assert tracker.version() == before
        assert tracker.write(lambda batch: batch.version) == tracker.version() == before + 1


def test_a_file_that_another_keeps_locked_is_said_to_be_busy_and_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE_MS", 50)
    with Tracker.open(tmp_path / "o.db") as tracker, contextlib.closing(sqlite3.connect(tmp_path / "o.db", isolation_level=None)) as other:
        tracker.write(lambda batch: batch.version)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="locked"):
            tracker.write(lambda batch: batch.version)
        other.execute("ROLLBACK")
        assert tracker.write(lambda batch: batch.version) == tracker.version()
