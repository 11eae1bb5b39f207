"""Compaction: many small chunks become few full ones, in the background, a series at a time, through the writer like any change.

While a series grows, its newest small chunks are merged as soon as they are about as many points as the one before them, so that a point
is rewritten some ten times at most, however it came. A series that has come to rest is merged for good.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Any

from sqlalchemy import delete, select, text, update

from onward.errors import OnwardError
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.raw_sql import execute, execute_many
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.series.chunks import FULL, in_order, pack, split, unpack
from onward.tracker.series.point_writer import ENOUGH, INSERT_CHUNK, chunk_row, joined
from onward.tracker.series.wide.tails import settle_all, waiting

log = logging.getLogger(__name__)

CROWDED = 24  # small chunks of one series, from which on merging is due
RESTING = 30.0  # seconds without a change
_SERIES_AT_ONCE = 16
_POINTS_AT_ONCE = 2 * FULL  # more take memory that a process never gives back
_PAGES_AT_ONCE = 2000
_SPARE_PAGES = 1000  # that a file may keep for what comes next
_series, _chunks, _runs = schema.series, schema.chunks, schema.runs


class Compactor:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, every: float = 1.0) -> None:
        """Tidy in the background from now on."""
        self._thread = threading.Thread(target=self._loop, args=(every,), name="tracker upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def tidy(self, *, resting: float = RESTING) -> int:
        """Merge what is due now; how many series were. `resting` 0: everything, for good."""
        done = self._settle(resting)
        while not self._stopping.is_set():
            crowded, calm = self._due(resting)
            for some, seal in ((crowded, False), (calm, True)):
                for i in range(0, len(some), _SERIES_AT_ONCE):
                    ids = some[i : i + _SERIES_AT_ONCE]
                    self._writer.do(partial(merge_all, ids=ids, seal=seal))
                    done += len(ids)
            if len(crowded) + len(calm) < 200:
                return done
        return done

    def shrink(self) -> None:
        """Give room that nothing uses any more back to the disk (SQLite)."""
        if self._database.is_file and self._free_pages() > _SPARE_PAGES:
            self._writer.do(_vacuum)

    def _settle(self, resting: float) -> int:
        """Tails of wide records that have come to rest."""
        with self._database.reading() as connection:
            if not waiting(connection):
                return 0
        return self._writer.do(lambda batch: settle_all(batch, untouched_since=batch.now - resting))

    def _free_pages(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(text("PRAGMA freelist_count")).scalar_one())

    def _due(self, resting: float) -> tuple[list[int], list[int]]:
        c = _series.c
        with self._database.reading() as connection:
            crowded = list(connection.execute(select(c.id).where(c.loose >= CROWDED).order_by(c.loose.desc()).limit(200)).scalars())
            calm = select(c.id).join(_runs, _runs.c.id == c.run).where(c.loose > 1, _runs.c.updated <= time.time() - resting).limit(200)
            return crowded, list(connection.execute(calm).scalars())

    def _loop(self, every: float) -> None:
        while not self._stopping.wait(every):
            try:
                if self.tidy() == 0:
                    self.shrink()
            except OnwardError as error:
                log.warning("compaction waits: %s", error)
            except Exception:
                log.exception("compaction failed; it is retried")


def merge_all(batch: Batch, *, ids: list[int], seal: bool) -> None:
    for id in ids:
        merge(batch, id, seal=seal)


def merge(batch: Batch, series: int, *, seal: bool) -> None:
    """Merge small chunks of a series, leg by leg. `seal`: all of them."""
    c = _chunks.c
    small = select(c.id, c.leg, c.points, c.first_step).where(c.series == series, c.full.is_(False))
    rows = batch.connection.execute(small.order_by(c.leg, c.id)).all()
    left = 0
    for leg in sorted({row.leg for row in rows}):
        mine = [row for row in rows if row.leg == leg]
        chosen = mine if seal else _newest_alike(mine)
        left += len(mine) - len(chosen)
        for some in _handfuls(sorted(chosen, key=lambda row: row.first_step)):
            left += _merge_leg(batch, series, leg, some) if len(some) > 1 else 1
    batch.connection.execute(update(_series).where(_series.c.id == series).values(loose=min(left, 1) if seal else left))


def _newest_alike(rows: list[Any]) -> list[Any]:
    """The newest chunks, back to one that is larger than twice all of these together."""
    chosen = [rows[-1]]
    total = rows[-1].points
    for row in reversed(rows[:-1]):
        if row.points > 2 * total:
            break
        chosen.append(row)
        total += row.points
    return chosen[::-1]


def _handfuls(rows: list[Any]) -> list[list[int]]:
    """Ids of chunks that are merged together: not so many points at once that memory would tell."""
    found: list[list[int]] = [[]]
    points = 0
    for row in rows:
        if points + row.points > _POINTS_AT_ONCE:
            found.append([])
            points = 0
        found[-1].append(row.id)
        points += row.points
    return [some for some in found if some]


def _merge_leg(batch: Batch, series: int, leg: int, ids: list[int]) -> int:
    """How many small chunks are left of these."""
    c = _chunks.c
    datas: dict[int, bytes] = {}
    for i in range(0, len(ids), 500):
        query = select(c.id, c.data).where(c.id.in_(ids[i : i + 500]))
        datas.update((row.id, row.data) for row in batch.connection.execute(query))
    whole = in_order(joined([unpack(datas[id]) for id in ids]))
    packed = [pack(piece) for piece in split(whole)]
    for i in range(0, len(ids), 500):
        batch.connection.execute(delete(_chunks).where(c.id.in_(ids[i : i + 500])))
    execute_many(batch.connection, INSERT_CHUNK, [chunk_row(series, leg, one) for one in packed])
    return sum(one.count < ENOUGH for one in packed)


def _vacuum(batch: Batch) -> None:
    free = batch.connection.execute(text("PRAGMA freelist_count")).scalar_one()
    if free > _SPARE_PAGES:
        for _ in range(min(free - 500, _PAGES_AT_ONCE)):
            execute(batch.connection, "PRAGMA incremental_vacuum(1)")  # frees one page a call: Python's driver takes one step of it
