"""Tracker: the face of this room. Thread-safe; open one a process, and close it.

    tracker = Tracker.open("~/.local/share/onward/onward.db")        # or postgresql://user@host/name
    tracker.experiments   create ensure get by_name all counts update delete_tag
    tracker.runs          create get find by_identity by_job view search changes update archive delete
                          set_params set_tags delete_tag param_history legs set_leg notes add_note delete_note
    tracker.ingest        points submit (a future) records
    tracker.standings     say_why: what a scheduler says of runs that wait
    tracker.views         of get save delete: named views of the pages
    tracker.alerts        rules and channels: list, one, save, delete
    tracker.notices       cursor put due bundle sent failed history forget: the outbox of alerts
    tracker.series        metrics chart charts points
    tracker.models        logged models, datasets: create get of finish delete set_tags log add_inputs add_outputs
    tracker.files         look(roots), look_at(run folders): take what is new in run folders
    tracker.event_files   look(folder, run): the same of TensorBoard's files in any folder
    tracker.push          announce piece: the same, sent by someone who can read them
    tracker.upkeep        start tidy shrink stop: compaction in the background
    tracker.election      won: whether this server is the one that tends
    tracker.write(job)    anything else: a function of a Batch (connection, version, now), committed when it returns
    tracker.reading()     a connection to read by, with the tables of `schema`; reading_points() for those of series and chunks
    tracker.must_store()  whether anything can be stored: raises what keeps it from it
    tracker.key()         what tells this store from every other

Whatever a method acknowledges is committed. Errors are those of `errors.py`: NotFound, InvalidInput, Conflict; StorageUnavailable and
StorageFull are transient.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, select

from onward.errors import StorageUnavailable
from onward.tracker import schema
from onward.tracker.alerts.outbox import Notices
from onward.tracker.alerts.rules import Alerts
from onward.tracker.db.database import Database, open_database
from onward.tracker.db.election import Election
from onward.tracker.db.location import with_connection_hint
from onward.tracker.db.migrate import migrate
from onward.tracker.db.storage_health import StorageHealth
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.folders.tail import FolderTail
from onward.tracker.ingest.pushed_journals import PushedJournals
from onward.tracker.ingest.receive import Ingest
from onward.tracker.runs.experiments import Experiments
from onward.tracker.runs.logged_models import LoggedModels
from onward.tracker.runs.registry import Runs
from onward.tracker.runs.summaries import RunSummaries
from onward.tracker.search.saved_views import SavedViews
from onward.tracker.series.charts import Series
from onward.tracker.series.compaction import Compactor
from onward.tracker.series.wide.tails import settle_all
from onward.tracker.tensorboard.tail import EventFiles

T = TypeVar("T")
_KEY = "store.key"


def _settle_all(batch: Batch) -> None:
    settle_all(batch, untouched_since=math.inf)


class Tracker:
    def __init__(self, database: Database) -> None:
        """Use `open`."""
        self.database = database
        self._writer = Writer(database)
        self.experiments = Experiments(database, self._writer)
        self.runs = Runs(database, self._writer)
        self.ingest = Ingest(self._writer)
        self.series = Series(database)
        self.models = LoggedModels(database, self._writer)
        self.standings = RunSummaries(database, self._writer)
        self.views = SavedViews(database, self._writer)
        self.alerts = Alerts(database, self._writer)
        self.notices = Notices(database, self._writer)
        self.files = FolderTail(database, self._writer)
        self.event_files = EventFiles(database, self._writer)
        self.push = PushedJournals(database, self._writer)
        self.upkeep = Compactor(database, self._writer)
        self.election = Election(database)
        database.settlers.append(lambda: self._writer.do(_settle_all))

    @classmethod
    def open(cls, address: str | Path) -> Tracker:
        """Open, and make or upgrade the tables where need be; others who do the same at once wait for each other."""
        database = open_database(address)
        try:
            migrate(database)
        except StorageUnavailable as error:
            database.close()
            if database.is_file:
                raise
            raise with_connection_hint(error, database.engine.url) from error
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Commit what waits, end the background, close."""
        self.upkeep.stop()
        self.election.leave()
        self._writer.close()
        self.database.close()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── anything else ─────────────────────────────────────────────────────────

    def write(self, job: Callable[[Batch], T]) -> T:
        """Do this in a transaction, by itself or with others; its answer, once committed. A raised OnwardError undoes it alone.

        After a lost connection it may be done twice: let it look before it acts.
        """
        return self._writer.do(job)

    def submit(self, job: Callable[[Batch], T]) -> Future[T]:
        """The same without waiting."""
        return self._writer.submit(job)

    def reading(self) -> contextlib.AbstractContextManager[Connection]:
        return self.database.reading()

    def reading_points(self) -> contextlib.AbstractContextManager[Connection]:
        """The same for what the tables `series` and `chunks` say."""
        return self.database.reading_points()

    def key(self) -> str:
        """What tells this store from every other: made once, and the same for all who share it."""

        def job(batch: Batch) -> str:
            c = schema.settings.c
            held = batch.connection.execute(select(c.value).where(c.key == _KEY)).scalar()
            if held is None:
                held = secrets.token_hex(4)
                batch.connection.execute(schema.settings.insert().values(key=_KEY, value=held))
            return str(held)

        with self.reading() as connection:
            held = connection.execute(select(schema.settings.c.value).where(schema.settings.c.key == _KEY)).scalar()
        return str(held) if held else self.write(job)

    @property
    def trouble(self) -> StorageHealth:
        return self._writer.trouble

    def must_store(self) -> None:
        """Raises what keeps the store from taking anything, if so. After a failure it is tried, so that its end is seen."""
        self.version()
        self.database.must_have_room()
        if self.trouble.error is not None:
            self._writer.do(lambda _: None)

    # ── what happens ──────────────────────────────────────────────────────────

    def version(self) -> int:
        """The number of the last commit: the cursor of a live stream."""
        with self.reading() as connection:
            return int(connection.execute(select(schema.store.c.version)).scalar_one())

    def wait_beyond(self, version: int, timeout: float) -> int:
        """Wait for a commit of this process after `version`. Where several servers share a database, ask `version()` now and then too."""
        return self._writer.wait_beyond(version, timeout)

    def waiting(self) -> int:
        """Jobs that await the writer: a measure of load."""
        return self._writer.waiting
