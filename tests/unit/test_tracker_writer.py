"""The writer's two threads: its own, and that of a caller who brings a few points."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from onward.errors import InvalidInput
from onward.tracker.db.database import open_database
from onward.tracker.db.migrate import migrate
from onward.tracker.db.writer import Batch, Writer

PATIENCE = 20.0


class Rows:
    """Keeps texts, and who kept them in which thread."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.pause = 0.0

    def run(self, batch: Batch, items: list[Any]) -> list[Any | Exception]:
        self.threads.append(threading.get_ident())
        time.sleep(self.pause)
        for item in items:
            if not item.startswith("bad"):
                batch.connection.exec_driver_sql("INSERT INTO settings VALUES (?, 'x')", (item,))
        return [InvalidInput("it is bad") if item.startswith("bad") else item for item in items]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "onward.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    database = open_database(path)
    migrate(database)
    writer = Writer(database)
    writer.do(lambda batch: None)  # so that its connection is there
    yield writer
    writer.close()
    database.close()


def put(writer: Writer, rows: Rows, text: str, weight: int = 1) -> Future[Any]:
    return writer.submit_to(rows, text, weight=weight, ring=False)


def kept(path: Path) -> list[str]:
    with sqlite3.connect(path) as file:
        return [key for (key,) in file.execute("SELECT key FROM settings ORDER BY key")]


def test_a_few_points_are_committed_in_the_callers_own_thread(writer: Writer, path: Path) -> None:
    rows = Rows()
    futures = [put(writer, rows, text) for text in ("a", "b")]
    writer.work_here()
    assert [future.done() for future in futures] == [True, True]
    assert rows.threads == [threading.get_ident()]
    assert kept(path) == ["a", "b"]


def test_a_refusal_is_the_answer_of_its_own_item_alone(writer: Writer, path: Path) -> None:
    rows = Rows()
    good, bad = put(writer, rows, "good"), put(writer, rows, "bad")
    writer.work_here()
    assert good.result(0) == "good"
    assert isinstance(bad.exception(0), InvalidInput)
    assert kept(path) == ["good"]


def test_one_that_breaks_the_transaction_does_not_take_the_others_with_it(writer: Writer, path: Path) -> None:
    rows = Rows()
    first, again, other = (put(writer, rows, text) for text in ("a", "a", "b"))
    writer.work_here()
    assert first.result(0) == "a"
    assert again.exception(0) is not None
    assert other.result(0) == "b"
    assert kept(path) == ["a", "b"]


def test_many_points_are_left_to_the_writers_thread(writer: Writer) -> None:
    rows = Rows()
    future = put(writer, rows, "many", weight=100_000)
    writer.work_here()
    assert future.result(PATIENCE) == "many"
    assert threading.get_ident() not in rows.threads


def test_a_job_beside_the_points_is_left_to_the_writers_thread(writer: Writer) -> None:
    rows = Rows()
    holding, held = threading.Event(), threading.Event()

    def hold(_: Batch) -> None:
        held.set()
        holding.wait(PATIENCE)

    writer.submit(hold)
    assert held.wait(PATIENCE)
    job = writer.submit(lambda batch: threading.get_ident())
    future = put(writer, rows, "a")
    writer.work_here()
    holding.set()
    assert future.result(PATIENCE) == "a"
    assert threading.get_ident() not in (job.result(PATIENCE), *rows.threads)


def test_where_another_program_writes_nobody_waits_for_it_but_the_writers_thread(writer: Writer, path: Path) -> None:
    rows = Rows()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    future = put(writer, rows, "a")
    writer.work_here()
    assert not future.done()
    other.execute("ROLLBACK")
    other.close()
    assert future.result(PATIENCE) == "a"
    assert kept(path) == ["a"]


def test_after_a_slow_commit_the_next_is_left_to_the_writers_thread(writer: Writer) -> None:
    rows = Rows()
    rows.pause = 0.1
    put(writer, rows, "slow")
    writer.work_here()
    rows.pause = 0.0
    future = put(writer, rows, "next")
    writer.work_here()
    assert future.result(PATIENCE) == "next"
    assert rows.threads[0] == threading.get_ident() != rows.threads[1]


def test_what_nobody_worked_off_is_committed_when_the_writer_closes(writer: Writer, path: Path) -> None:
    future = put(writer, Rows(), "late")
    writer.close()
    assert future.result(0) == "late"
    assert kept(path) == ["late"]


def test_what_was_cancelled_is_not_done_and_holds_nothing_up(writer: Writer, path: Path) -> None:
    rows = Rows()
    assert put(writer, rows, "never").cancel()
    writer.work_here()
    with sqlite3.connect(path, timeout=0) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert writer.do(lambda batch: "done") == "done"
    assert kept(path) == []
