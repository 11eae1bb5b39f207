"""The one writer: a thread that takes what waits, does all of it in one transaction, and answers after the commit.

Many callers share one flush to disk, and none is answered before its change is there for good. A job that fails is
undone alone; if the transaction itself fails, its jobs are tried again one by one, so that one cannot spoil another.

To wake a thread and to be woken by it costs as much as a small commit. So a caller who brings a few points may commit them itself
(`work_here`), where the database is a file, nobody else writes, and the disk has been quick.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, exc

from onward.errors import OnwardError, StorageError, StorageUnavailable
from onward.tracker.db.database import Database, is_away, translate, unsupported_value
from onward.tracker.db.raw_sql import begin, commit, fetch, own, rollback
from onward.tracker.db.storage_health import StorageHealth

log = logging.getLogger(__name__)

T = TypeVar("T")
_MOST_JOBS = 512  # in one transaction
_MOST_WEIGHT = 50_000
_TRIES = 3
_PATIENCE = 30.0  # seconds for another program that writes to the same file
_FEW = 64  # points that a caller may commit in its own thread
_QUICK = 0.001  # seconds that such a commit may take, as the last ones did
_RAISE = "UPDATE store SET version = version + 1 WHERE id = 1 RETURNING version, "
_RAISE_IN_FILE, _RAISE_ON_SERVER = _RAISE + "NULL", _RAISE + "txid_current()"
_ASKED = 200  # times, whether a transaction was committed that the server is still at


@dataclass(kw_only=True)
class Batch:
    """One transaction in the making. `version` numbers it; what it changes carries that number."""

    connection: Connection
    version: int
    now: float


Job = Callable[[Batch], Any]


@dataclass(kw_only=True)
class _QueuedJob:
    job: Job
    weight: int
    future: Future[Any] = field(default_factory=Future)


class JobGroup(Protocol):
    """Jobs of one kind that are better done together (points of many callers). Gets them all, answers for each."""

    def run(self, batch: Batch, items: list[Any]) -> list[Any | Exception]: ...


@dataclass(kw_only=True)
class _QueuedGroupJob(_QueuedJob):
    group: JobGroup
    item: Any


class Writer:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_QueuedJob] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()  # rung where something waits for the thread
        self._turn = threading.Lock()  # held by who takes from what waits, until it is committed
        self._closed = False
        self._changed = threading.Condition()
        self._kept: Connection | None = None
        self._lasts = 0.0  # seconds that a small commit takes of late
        self.version = 0
        self.trouble = StorageHealth()
        self._thread = threading.Thread(target=self._loop, name="tracker writer", daemon=True)
        self._thread.start()

    # ── for callers ───────────────────────────────────────────────────────────

    def do(self, job: Callable[[Batch], T]) -> T:
        """Do it and wait until it is committed. Raises what the job raised."""
        return self.submit(job).result()

    def submit(self, job: Callable[[Batch], T], *, weight: int = 1) -> Future[T]:
        return self._put(_QueuedJob(job=job, weight=weight))

    def submit_to(self, group: JobGroup, item: Any, *, weight: int = 1, ring: bool = True) -> Future[Any]:
        """Without `ring` the caller has to `work_here` afterwards."""
        return self._put(_QueuedGroupJob(job=_never, weight=weight, group=group, item=item), ring)

    def work_here(self) -> None:
        """Commit what waits in the caller's own thread, if that is quickly done; else the writer's thread is told."""
        if self._lasts < _QUICK and self._turn.acquire(blocking=False):
            try:
                count = self._few()
                if count and self._kept is not None and begin(self._kept):
                    self._work(count)
            finally:
                self._turn.release()
        if self._waiting:
            self._bell.put(None)

    def wait_beyond(self, version: int, timeout: float) -> int:
        """Wait until something was committed here after `version`; the newest version, or the same if nothing came."""
        with self._changed:
            self._changed.wait_for(lambda: self.version > version or self._closed, timeout)
            return self.version

    def close(self) -> None:
        """Finish what waits, then stop."""
        if not self._closed:
            self._closed = True
            self._bell.put(None)
            self._thread.join()
            with self._changed:
                self._changed.notify_all()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _put(self, entry: _QueuedJob, ring: bool = True) -> Future[Any]:
        if self._closed:
            raise StorageUnavailable("the tracker is stopping", hint="try again when it is running")
        self._waiting.append(entry)
        if ring:
            self._bell.put(None)
        return entry.future

    # ── the thread ────────────────────────────────────────────────────────────

    def _loop(self) -> None:
        while self._waiting or not self._closed:
            self._bell.get()
            with self._turn:
                while self._waiting:
                    self._work(self._few())
        if self._kept is not None:
            self._kept.close()

    # ── whoever's turn it is ──────────────────────────────────────────────────

    def _few(self) -> int:
        """How many wait, if they are points alone and not many; else 0."""
        waiting = tuple(self._waiting)
        light = all(isinstance(entry, _QueuedGroupJob) for entry in waiting) and sum(entry.weight for entry in waiting) <= _FEW
        return len(waiting) if light else 0

    def _work(self, few: int) -> None:
        """Commit the first that wait: so `few`, or, if that is 0, as many as one transaction takes."""
        began = time.perf_counter()
        entries = self._take(few or _MOST_JOBS)
        if entries:
            self._commit(entries)
        elif self._kept is not None:
            rollback(self._kept)  # all were cancelled
        if few:
            self._lasts += (time.perf_counter() - began - self._lasts) / 8

    def _take(self, most: int) -> list[_QueuedJob]:
        entries: list[_QueuedJob] = []
        weight = 0
        while self._waiting and len(entries) < most and weight < _MOST_WEIGHT:
            entry = self._waiting.popleft()
            if entry.future.set_running_or_notify_cancel():
                entries.append(entry)
                weight += entry.weight
        return entries

    def _commit(self, entries: list[_QueuedJob]) -> None:
        """All in one transaction; one by one where that failed for a reason that may lie in one of them.

        Where the answer to a COMMIT was lost, the server is asked what became of it: what is committed is not done again.
        """
        unclear: _Unclear | None = None
        for attempt in range(_TRIES):
            try:
                if unclear is not None and self._was_committed(unclear.transaction):
                    self._committed(unclear.version)
                    answers = unclear.answers
                else:
                    unclear = None
                    answers = self._transaction(entries)
            except exc.DBAPIError as error:
                unclear = error if isinstance(error, _Unclear) else unclear
                if is_away(error) and attempt + 1 < _TRIES and not self._database.is_file:
                    log.warning(
                        "lost the database during a commit; of its %d jobs, those that were not committed are done again", len(entries)
                    )
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

    def _refuse(self, entries: list[_QueuedJob], error: Exception) -> None:
        if len(entries) > 1 and not (isinstance(error, OnwardError) and error.transient):
            for entry in entries:
                self._commit([entry])
            return
        if isinstance(error, StorageError):
            self.trouble.met(error, refused=len(entries))
        if not isinstance(error, OnwardError):
            log.error("a tracker job failed", exc_info=error)
        for entry in entries:
            entry.future.set_exception(error)

    def _transaction(self, entries: list[_QueuedJob]) -> list[Any]:
        """A file's connection is kept if all goes well: the pool costs as much as a small change. A server may be gone: its pool asks."""
        connection = self._kept or self._open()
        self._kept = None
        try:
            if not begin(connection, patience=_PATIENCE):
                raise StorageUnavailable(
                    f"{self._database.words} is locked by another program", hint="end that program, or try again later"
                )
            version, transaction, answers = self._answers(connection, entries)
            try:
                commit(connection)
            except exc.DBAPIError as error:
                if transaction is None or not is_away(error):
                    raise
                raise _Unclear(error, transaction, version, answers) from error
            if self._database.is_file:
                self._kept = connection
        finally:
            if self._kept is None:
                connection.close()  # undoes what is not committed
        self._committed(version)
        return answers

    def _committed(self, version: int) -> None:
        self.trouble.over()
        with self._changed:
            self.version = version
            self._changed.notify_all()

    def _was_committed(self, transaction: int) -> bool:
        """What PostgreSQL knows of a transaction whose COMMIT it did not answer. Raises DBAPIError where it still does not answer."""
        for _ in range(_ASKED):
            with self._database.engine.connect() as connection:
                try:
                    ((state,),) = fetch(connection, "SELECT txid_status(?)", [transaction])
                except exc.DataError:  # a number that it has not given out: a standby that never heard of it has taken over
                    return False
            if state != "in progress":
                return bool(state == "committed")
            time.sleep(0.05)
        raise StorageUnavailable(f"{self._database.words} has not ended a transaction", hint="it is retried")

    def _open(self) -> Connection:
        connection = self._database.engine.connect()
        if self._database.is_file:
            own(connection)
        return connection

    def _answers(self, connection: Connection, entries: list[_QueuedJob]) -> tuple[int, int | None, list[Any]]:
        """The version, the transaction as PostgreSQL knows it, and the answers."""
        answers: list[Any] = [None] * len(entries)
        # the first statement takes the row that every writer takes: one transaction at a time, whoever shares the database
        ((version, transaction),) = fetch(connection, _RAISE_IN_FILE if self._database.is_file else _RAISE_ON_SERVER)
        batch = Batch(connection=connection, version=version, now=time.time())
        groups: dict[int, tuple[JobGroup, list[int]]] = {}
        for index, entry in enumerate(entries):
            if isinstance(entry, _QueuedGroupJob):
                groups.setdefault(id(entry.group), (entry.group, []))[1].append(index)
            else:
                answers[index] = _one(batch, entry.job)
        for group, members in groups.values():
            items = [entry.item for entry in (entries[i] for i in members) if isinstance(entry, _QueuedGroupJob)]
            for index, answer in zip(members, group.run(batch, items), strict=True):
                answers[index] = answer
        return version, transaction, answers


class _Unclear(exc.OperationalError):
    """The answer to a COMMIT was lost: it may have been done."""

    def __init__(self, error: exc.DBAPIError, transaction: int, version: int, answers: list[Any]) -> None:
        super().__init__("COMMIT", None, error.orig or error)
        self.transaction = transaction
        self.version = version
        self.answers = answers


def _one(batch: Batch, job: Job) -> Any:
    """A refusal undoes this job and is its answer; anything worse undoes the whole transaction."""
    try:
        with batch.connection.begin_nested():
            return job(batch)
    except OnwardError as error:
        return error
    except (UnicodeEncodeError, OverflowError, exc.DataError, exc.IntegrityError) as error:
        return unsupported_value(error)


def _never(_batch: Batch) -> None:
    raise AssertionError("a member of a group is not done by itself")
