"""Tails: the newest wide records of a run, each batch of them one row, until they are settled into chunks of their series.

A record of 5,000 metrics would change 10,000 rows by itself. In a tail it is one row of 8 bytes a point. After so many records, before
anybody reads what the series rows say, and when the run has come to rest, the tail is settled: then each series gets all of its
new points at once. Runs inside the writer's transaction, so that a tail and what it became are never both there, or neither.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, func, select

from onward.tracker import schema
from onward.tracker.db.raw_sql import execute_many, fetch, insert_into, marks
from onward.tracker.db.writer import Batch
from onward.tracker.series.chunks import Columns
from onward.tracker.series.point_writer import PointBatch, ensure_series, write_points

WIDE = 200  # metrics of a record from which on it is a wide one
MOST_RECORDS = 128  # of one run, until its tail is settled
MOST_POINTS = 1_000_000  # likewise: 8 MB, which are settled in less than a second
_MOST_KEYS = 8  # sets of metrics that a run's tail may have
_INSERT = insert_into("tails", ("run", "leg", "keys", "records", "points", "at", "data"))
_KEYS = insert_into("tail_keys", ("run", "digest", "names"))


@dataclass(slots=True)
class WideRows:
    """Records with the same metrics in the same order. `values`: record by record."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, step: int, time: int, values: Iterable[float]) -> None:
        """Raises OverflowError or TypeError for a value that is no float; then nothing is added."""
        self.values += array("d", values)
        self.steps.append(step)
        self.times.append(time)

    def extend(self, data: bytes, count: int) -> None:
        """By the bytes of a tail of so many records."""
        self.steps.extend(_little(array("q", data[: 8 * count])))
        self.times.extend(_little(array("q", data[8 * count : 16 * count])))
        self.values.extend(_little(array("d", data[16 * count :])))

    def data(self) -> bytes:
        columns: list[Any] = [self.steps, self.times, self.values]
        return b"".join(_little(column).tobytes() for column in columns)

    def column(self, index: int, width: int) -> Columns:
        return Columns(self.steps, self.times, self.values[index::width])


Wide = dict[tuple[str, ...], WideRows]


def add_to_tail(batch: Batch, run: int, leg: int, wide: Wide) -> int:
    """How many points were taken. What is in `wide` is known to be new."""
    taken = 0
    for names, rows in wide.items():
        keys = _keys_of(batch, run, names)
        count, points = len(rows.steps), len(rows.values)
        taken += points
        execute_many(batch.connection, _INSERT, [(run, leg, keys, count, points, batch.now, rows.data())])
    ((records, points),) = fetch(batch.connection, "SELECT SUM(records), SUM(points) FROM tails WHERE run = ?", [run])
    if (records or 0) >= MOST_RECORDS or (points or 0) >= MOST_POINTS:
        settle(batch, [run])
    return taken


def settle(batch: Batch, runs: Sequence[int]) -> None:
    """Make chunks of what these runs (inner ids) have in their tails."""
    for run in runs:
        rows = fetch(batch.connection, "SELECT id, leg, keys, records, data FROM tails WHERE run = ? ORDER BY id", [run])
        if not rows:
            continue
        ((newest,),) = fetch(batch.connection, "SELECT leg FROM runs WHERE id = ?", [run])
        parts: dict[tuple[int, int], WideRows] = {}
        for _, leg, keys, count, data in rows:
            parts.setdefault((leg, keys), WideRows()).extend(data, count)
        deliveries = []
        for (leg, keys), part in parts.items():
            names = names_of(batch.connection, keys)
            columns = {name: part.column(index, len(names)) for index, name in enumerate(names)}
            deliveries.append(PointBatch(run, leg, max(newest, leg), columns, True))
        write_points(batch, deliveries)
        execute_many(batch.connection, "DELETE FROM tails WHERE run = ? AND id <= ?", [(run, rows[-1][0])])
        _forget_keys(batch, run)


def settle_all(batch: Batch, *, untouched_since: float) -> int:
    """Those of runs whose tails have not grown since then; how many there were."""
    t = schema.tails.c
    calm = select(t.run).group_by(t.run).having(func.max(t.at) <= untouched_since)
    runs = list(batch.connection.execute(calm).scalars())
    settle(batch, runs)
    return len(runs)


def waiting(connection: Connection) -> list[int]:
    """Runs that have something in their tails."""
    return [run for (run,) in fetch(connection, "SELECT DISTINCT run FROM tails")]


def settle_these(batch: Batch, runs: Iterable[int]) -> None:
    """Before something is decided by what series rows and chunks say. Costs a question where there is nothing to do."""
    some = list(runs)
    for i in range(0, len(some), 500):
        few = some[i : i + 500]
        text = f"SELECT DISTINCT run FROM tails WHERE run IN ({marks(len(few))})"
        settle(batch, [run for (run,) in fetch(batch.connection, text, few)])


def names_of(connection: Connection, keys: int) -> list[str]:
    ((rows,),) = fetch(connection, "SELECT names FROM tail_keys WHERE id = ?", [keys])
    return list(json.loads(rows))


def has_room(batch: Batch, run: int, names: tuple[str, ...]) -> bool:
    """Whether records with these metrics go to the tail: not those of a training that logs other ones each time."""
    ((count, mine),) = fetch(
        batch.connection,
        "SELECT COUNT(*), SUM(CASE WHEN digest = ? THEN 1 ELSE 0 END) FROM tail_keys WHERE run = ?",
        [_digest(names), run],
    )
    return bool(mine) or count < _MOST_KEYS


def _keys_of(batch: Batch, run: int, names: tuple[str, ...]) -> int:
    digest = _digest(names)
    question = "SELECT id FROM tail_keys WHERE run = ? AND digest = ?"
    found = fetch(batch.connection, question, [run, digest])
    if not found:
        ensure_series(batch, {(run, name) for name in names})  # so that whoever looks for a series finds it
        execute_many(batch.connection, _KEYS, [(run, digest, json.dumps(names))])
        found = fetch(batch.connection, question, [run, digest])
    return int(found[0][0])


def _forget_keys(batch: Batch, run: int) -> None:
    ids = [id for (id,) in fetch(batch.connection, "SELECT id FROM tail_keys WHERE run = ? ORDER BY id DESC", [run])]
    old = [(id,) for id in ids[_MOST_KEYS // 2 :]]
    execute_many(batch.connection, "DELETE FROM tail_keys WHERE id = ?", old)


def _digest(names: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()


def _little(numbers: Any) -> Any:
    if sys.byteorder == "little":
        return numbers
    swapped = numbers[:]
    swapped.byteswap()
    return swapped
