"""The one writer: a thread that takes what waits, does all of it in one transaction, and answers after the commit.

Many callers share one flush to disk, and none is answered before its change is there for good. A job that fails is
undone alone; if the transaction itself fails, its jobs are tried again one by one, so that one cannot spoil another.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, exc

from onward.errors import OnwardError, StorageError, StorageUnavailable
from onward.tracker.db import Database, is_away, translate, unfit
from onward.tracker.driver import fetch
from onward.tracker.trouble import Trouble

log = logging.getLogger(__name__)

T = TypeVar("T")
_MOST_JOBS = 512  # in one transaction
_MOST_WEIGHT = 50_000
_TRIES = 3
_RAISE = "UPDATE store SET version = version + 1 WHERE id = 1 RETURNING version"


@dataclass(kw_only=True)
class Batch:
    """One transaction in the making. `version` numbers it; what it changes carries that number."""

    connection: Connection
    version: int
    now: float


Job = Callable[[Batch], Any]


@dataclass(kw_only=True)
class _Entry:
    job: Job
    weight: int
    future: Future[Any] = field(default_factory=Future)


class Group:
    """Jobs of one kind that are better done together (points of many callers). Gets them all, answers for each."""

    def run(self, batch: Batch, items: list[Any]) -> list[Any | Exception]:
        raise NotImplementedError


@dataclass(kw_only=True)
class _GroupEntry(_Entry):
    group: Group
    item: Any


class Writer:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._closed = False
        self._changed = threading.Condition()
        self._kept: Connection | None = None
        self.version = 0
        self.trouble = Trouble()
        self._thread = threading.Thread(target=self._loop, name="tracker writer", daemon=True)
        self._thread.start()

    # ── for callers ───────────────────────────────────────────────────────────

    def do(self, job: Callable[[Batch], T]) -> T:
        """Do it and wait until it is committed. Raises what the job raised."""
        return self.submit(job).result()

    def submit(self, job: Callable[[Batch], T], *, weight: int = 1) -> Future[T]:
        return self._put(_Entry(job=job, weight=weight))

    def submit_to(self, group: Group, item: Any, *, weight: int = 1) -> Future[Any]:
        return self._put(_GroupEntry(job=_never, weight=weight, group=group, item=item))

    def wait_beyond(self, version: int, timeout: float) -> int:
        """Wait until something was committed here after `version`; the newest version, or the same if nothing came."""
        with self._changed:
            self._changed.wait_for(lambda: self.version > version or self._closed, timeout)
            return self.version

    def close(self) -> None:
        """Finish what waits, then stop."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()
            with self._changed:
                self._changed.notify_all()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def _put(self, entry: _Entry) -> Future[Any]:
        if self._closed:
            raise StorageUnavailable("the tracker is stopping", hint="try again when it is up")
        self._queue.put(entry)
        return entry.future

    # ── the thread ────────────────────────────────────────────────────────────

    def _loop(self) -> None:
        stopping = False
        while not stopping:
            entries: list[_Entry] = []
            entry = self._queue.get()
            weight = 0
            while True:
                if entry is None:
                    stopping = True
                    break
                if entry.future.set_running_or_notify_cancel():
                    entries.append(entry)
                    weight += entry.weight
                if len(entries) >= _MOST_JOBS or weight >= _MOST_WEIGHT:
                    break
                try:
                    entry = self._queue.get_nowait()
                except queue.Empty:
                    break
            if entries:
                self._commit(entries)
        if self._kept is not None:
            self._kept.close()

    def _commit(self, entries: list[_Entry]) -> None:
        """All in one transaction; one by one where that failed for a reason that may lie in one of them."""
        for attempt in range(_TRIES):
            try:
                answers = self._transaction(entries)
            except exc.DBAPIError as error:
                if is_away(error) and attempt + 1 < _TRIES and not self._database.is_file:
                    log.warning("the database went away during a commit; its %d jobs are done again", len(entries))
                    time.sleep(0.05 * (attempt + 1))
                    continue
                self._refuse(entries, translate(error, self._database.words))
                return
            except Exception as error:
                self._refuse(entries, error)
                return
            for entry, answer in zip(entries, answers, strict=True):
                if isinstance(answer, Exception):
                    entry.future.set_exception(answer)
                else:
                    entry.future.set_result(answer)
            return

    def _refuse(self, entries: list[_Entry], error: Exception) -> None:
        if len(entries) > 1 and not (isinstance(error, OnwardError) and error.transient):
            for entry in entries:
                self._commit([entry])
            return
        if isinstance(error, StorageError):
            self.trouble.met(error, refused=len(entries))
        if not isinstance(error, OnwardError):
            log.error("a job of the tracker failed", exc_info=error)
        for entry in entries:
            entry.future.set_exception(error)

    def _transaction(self, entries: list[_Entry]) -> list[Any]:
        """A file's connection is kept if all goes well: the pool costs as much as a small change. A server may be gone: its pool asks."""
        connection = self._kept or self._database.engine.connect().execution_options(onward_writes=True)
        self._kept = None
        try:
            with connection.begin():
                version, answers = self._answers(connection, entries)
            if self._database.is_file:
                self._kept = connection
        finally:
            if self._kept is None:
                connection.close()
        self.trouble.over()
        with self._changed:
            self.version = version
            self._changed.notify_all()
        return answers

    def _answers(self, connection: Connection, entries: list[_Entry]) -> tuple[int, list[Any]]:
        answers: list[Any] = [None] * len(entries)
        # the first statement takes the row that every writer takes: one transaction at a time, whoever shares the database
        ((version,),) = fetch(connection, _RAISE)
        batch = Batch(connection=connection, version=version, now=time.time())
        groups: dict[int, tuple[Group, list[int]]] = {}
        for index, entry in enumerate(entries):
            if isinstance(entry, _GroupEntry):
                groups.setdefault(id(entry.group), (entry.group, []))[1].append(index)
            else:
                answers[index] = _one(batch, entry.job)
        for group, members in groups.values():
            items = [entry.item for entry in (entries[i] for i in members) if isinstance(entry, _GroupEntry)]
            for index, answer in zip(members, group.run(batch, items), strict=True):
                answers[index] = answer
        return version, answers


def _one(batch: Batch, job: Job) -> Any:
    """A refusal undoes this job and is its answer; anything worse undoes the whole transaction."""
    try:
        with batch.connection.begin_nested():
            return job(batch)
    except OnwardError as error:
        return error
    except (UnicodeEncodeError, OverflowError, exc.DataError) as error:
        return unfit(error)


def _never(_batch: Batch) -> None:
    raise AssertionError("a member of a group is not done by itself")
