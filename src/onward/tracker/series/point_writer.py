"""Writing points: into chunks, with the last and best values of their series. Runs inside the writer's transaction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import lt
from typing import Any

from onward.tracker.db.raw_sql import execute_many, fetch, insert_into, marks, names, update_by_id
from onward.tracker.db.writer import Batch
from onward.tracker.series.chunks import FULL, Columns, Packed, in_order, pack, split, unpack
from onward.tracker.series.last_and_best import SeriesRow, plain, recompute
from onward.tracker.series.stitch import NOTHING

ENOUGH = FULL // 2  # a chunk of this many points is left as it is
_AT_ONCE = 500  # names in one query

_CHUNK = (
    *("series", "leg", "points", "full", "first_step", "first_time", "last_step", "last_time", "last_value"),
    *("bad", "min_value", "min_step", "max_value", "max_step", "summary", "data"),
)
INSERT_CHUNK = insert_into("chunks", _CHUNK)
_INSERT_SERIES = insert_into("series", ("run", "key", "points", "leg", "leg_first", "top_step", "top_time", "loose", "version"))
_SELECT_SERIES = f"SELECT {names(SeriesRow.COLUMNS)} FROM series"
_UPDATE_SERIES = update_by_id("series", (*SeriesRow.CHANGED, "version"))


@dataclass(frozen=True, slots=True)
class PointBatch:
    """Points of one leg of a run (its inner id), by key. `known_new`: they were told apart by sequence numbers already."""

    run: int
    leg: int
    newest: int  # the newest leg of the run
    columns: Mapping[str, Columns]
    known_new: bool


@dataclass(slots=True)
class _SeriesAdditions:
    """What one transaction brings to one series from one leg."""

    leg: int
    newest: int
    columns: list[Columns] = field(default_factory=list)  # known to be new
    doubtful: list[Columns] = field(default_factory=list)


def joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return Columns([s for p in parts for s in p.steps], [t for p in parts for t in p.times], [v for p in parts for v in p.values])


def write_points(batch: Batch, deliveries: Iterable[PointBatch]) -> int:
    """Store them all; the number of points that were new."""
    parts: dict[tuple[int, str, int], _SeriesAdditions] = {}
    for delivery in deliveries:
        for key, columns in delivery.columns.items():
            if columns.steps:
                name = (delivery.run, key, delivery.leg)
                part = parts.get(name)
                if part is None:
                    part = parts[name] = _SeriesAdditions(delivery.leg, delivery.newest)
                (part.columns if delivery.known_new else part.doubtful).append(columns)
    if not parts:
        return 0
    rows = ensure_series(batch, {(run, key) for run, key, _ in parts})
    new_chunks: list[tuple[Any, ...]] = []
    changed: dict[int, SeriesRow] = {}
    unclear: dict[int, SeriesRow] = {}
    written = 0
    for run, key, leg in sorted(parts):
        part, row = parts[run, key, leg], rows[run, key]
        columns = _without_repeats(batch, row, part)
        count = len(columns.steps)
        if not count:
            continue
        written += count
        changed[row.id] = row
        packed = [pack(columns)] if count == 1 else [pack(piece) for piece in split(in_order(columns))]
        new_chunks += [chunk_row(row.id, leg, one) for one in packed]
        if _account(row, part, packed):
            unclear[row.id] = row
    execute_many(batch.connection, INSERT_CHUNK, new_chunks)
    if unclear:
        recompute(batch, list(unclear.values()))
    execute_many(batch.connection, _UPDATE_SERIES, [(*row.changed(), batch.version, row.id) for row in changed.values()])
    return written


def chunk_row(series: int, leg: int, packed: Packed) -> tuple[Any, ...]:
    """The parameters of INSERT_CHUNK."""
    return (
        *(series, leg, packed.count, packed.count >= ENOUGH),
        *(packed.first_step, packed.first_time, packed.last_step, packed.last_time, plain(packed.last_value)),
        *(packed.bad, packed.low, packed.low_step, packed.high, packed.high_step, packed.summary, packed.data),
    )


# ── series rows ───────────────────────────────────────────────────────────────


def ensure_series(batch: Batch, wanted: set[tuple[int, str]]) -> dict[tuple[int, str], SeriesRow]:
    """The rows of these series (run, key), made where there are none."""
    rows = _load_series(batch, wanted)
    if len(rows) < len(wanted):
        missing = sorted(wanted - rows.keys())
        blank = (0, 0, 0, NOTHING, NOTHING, 0, batch.version)
        execute_many(batch.connection, _INSERT_SERIES, [(run, key, *blank) for run, key in missing])
        rows |= _load_series(batch, set(missing))
    return rows


def _load_series(batch: Batch, wanted: set[tuple[int, str]]) -> dict[tuple[int, str], SeriesRow]:
    by_run: dict[int, list[str]] = {}
    for run, key in wanted:
        by_run.setdefault(run, []).append(key)
    found: dict[tuple[int, str], SeriesRow] = {}
    keys = {key for _, key in wanted}
    if len(keys) <= 20 and len(by_run) <= _AT_ONCE:  # many runs that log the same few metrics: one question for all
        questions = [(list(by_run), list(keys))]
    else:
        questions = [([run], run_keys[i : i + _AT_ONCE]) for run, run_keys in by_run.items() for i in range(0, len(run_keys), _AT_ONCE)]
    for runs, some in questions:
        text = f'{_SELECT_SERIES} WHERE run IN ({marks(len(runs))}) AND "key" IN ({marks(len(some))})'
        for row in (SeriesRow(*fields) for fields in fetch(batch.connection, text, [*runs, *some])):
            if (row.run, row.key) in wanted:
                found[row.run, row.key] = row
    return found


def _account(row: SeriesRow, part: _SeriesAdditions, packed: list[Packed]) -> bool:
    """Add new chunks to a series' row; True where what shows must be worked out from all chunks."""
    first, top, leg = packed[0].first_step, packed[-1], part.leg
    unclear = row.leg not in (0, leg) or leg < part.newest
    for one in packed:
        row.points += one.count
        row.loose += one.count < ENOUGH
    if (top.last_step, top.last_time) > (row.top_step, row.top_time):
        row.top_step, row.top_time = top.last_step, top.last_time
    if leg > row.leg:
        row.leg, row.leg_first = leg, first
    elif leg == row.leg and first < row.leg_first:
        row.leg_first = first
        unclear = unclear or leg > 1
    if not unclear:
        for one in packed:
            row.merge(one.last_step, one.last_time, plain(one.last_value), one.low, one.low_step, one.high, one.high_step)
    return unclear


# ── points without sequence numbers ───────────────────────────────────────────


def _without_repeats(batch: Batch, row: SeriesRow, part: _SeriesAdditions) -> Columns:
    """A point is the same as another if step, time and value are: it is stored once, however often a client sends it."""
    if not part.doubtful:
        return joined(part.columns)
    columns = in_order(joined(part.doubtful))
    steps, times = columns.steps, columns.times
    frontier = (row.top_step, row.top_time)
    first, last = (steps[0], times[0]), (steps[-1], times[-1])
    if first > frontier and (len(steps) == 1 or _rising(steps) or _rising(list(zip(steps, times, strict=True)))):
        return joined([*part.columns, columns]) if part.columns else columns
    seen = _stored(batch, row.id, first, min(last, frontier)) if first <= frontier else set()
    keep: list[int] = []
    for index, (step, time, value) in enumerate(zip(steps, times, columns.values, strict=True)):
        name = (step, time, _bits(value))
        if name not in seen:
            seen.add(name)
            keep.append(index)
    columns = Columns([steps[i] for i in keep], [times[i] for i in keep], [columns.values[i] for i in keep])
    return joined([*part.columns, columns])


def _rising(row: Any) -> bool:
    return all(map(lt, row, row[1:]))


_STORED = """SELECT data FROM chunks WHERE series = ?
    AND (first_step < ? OR (first_step = ? AND first_time <= ?)) AND (last_step > ? OR (last_step = ? AND last_time >= ?))"""


def _stored(batch: Batch, series: int, first: tuple[int, int], last: tuple[int, int]) -> set[tuple[int, int, float | str]]:
    """The points of a series between two (step, time)."""
    found: set[tuple[int, int, float | str]] = set()
    values = (series, last[0], last[0], last[1], first[0], first[0], first[1])
    for (data,) in fetch(batch.connection, _STORED, values):
        columns = unpack(data)
        found.update(
            (s, t, _bits(v)) for s, t, v in zip(columns.steps, columns.times, columns.values, strict=True) if first <= (s, t) <= last
        )
    return found


def _bits(value: float) -> float | str:
    return "nan" if math.isnan(value) else value
