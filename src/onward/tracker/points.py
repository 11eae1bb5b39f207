"""Writing points: into chunks, with the last and best values of their series. Runs inside the writer's transaction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, bindparam, insert, or_, select, update

from onward.tracker import schema
from onward.tracker.chunks import FULL, Columns, Packed, in_order, pack, unpack
from onward.tracker.restitch import Shown, merge_values, plain, restitch
from onward.tracker.stitch import NOTHING
from onward.tracker.writer import Batch

ENOUGH = FULL // 2  # a chunk of this many points is left as it is
_AT_ONCE = 500  # names in one query
_series, _chunks = schema.series, schema.chunks


@dataclass(frozen=True, slots=True)
class Delivery:
    """Points of one leg of a run (its inner id), by key. `known_new`: they were told apart by sequence numbers already."""

    run: int
    leg: int
    newest: int  # the newest leg of the run
    columns: Mapping[str, Columns]
    known_new: bool


@dataclass(slots=True)
class _Part:
    """What one transaction brings to one series from one leg."""

    leg: int
    newest: int
    columns: list[Columns] = field(default_factory=list)  # known to be new
    doubtful: list[Columns] = field(default_factory=list)

    def all(self) -> Columns:
        return joined(self.columns + self.doubtful)


def joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return Columns([s for p in parts for s in p.steps], [t for p in parts for t in p.times], [v for p in parts for v in p.values])


def write_points(batch: Batch, deliveries: Iterable[Delivery]) -> int:
    """Store them all; the number of points that were new."""
    parts: dict[tuple[int, str, int], _Part] = {}
    for delivery in deliveries:
        for key, columns in delivery.columns.items():
            if len(columns):
                part = parts.setdefault((delivery.run, key, delivery.leg), _Part(delivery.leg, delivery.newest))
                (part.columns if delivery.known_new else part.doubtful).append(columns)
    if not parts:
        return 0
    rows = _ensure_series(batch, {(run, key) for run, key, _ in parts})
    new_chunks: list[dict[str, Any]] = []
    changed: dict[int, dict[str, Any]] = {}
    unclear: dict[int, dict[str, Any]] = {}
    written = 0
    for (run, key, leg), part in sorted(parts.items(), key=lambda item: item[0]):
        row = rows[run, key]
        columns = _without_repeats(batch, row, part)
        if not len(columns):
            continue
        written += len(columns)
        changed[row["id"]] = row
        packed = [pack(piece) for piece in split(in_order(columns))]
        new_chunks += [chunk_row(row["id"], leg, one) for one in packed]
        if _account(row, part, packed):
            unclear[row["id"]] = row
    if new_chunks:
        batch.connection.execute(insert(_chunks), new_chunks)
    if unclear:
        restitch(batch, list(unclear.values()))
    if changed:
        for row in changed.values():
            row["version"] = batch.version
        batch.connection.execute(_UPDATE, [{f"b_{name}": row[name] for name in _UPDATED} | {"b_id": row["id"]} for row in changed.values()])
    return written


def split(columns: Columns) -> list[Columns]:
    """Pieces of at most FULL points, about equally long."""
    count = len(columns)
    if count <= FULL:
        return [columns]
    size = -(-count // -(-count // FULL))
    return [Columns(columns.steps[i : i + size], columns.times[i : i + size], columns.values[i : i + size]) for i in range(0, count, size)]


def chunk_row(series: int, leg: int, packed: Packed) -> dict[str, Any]:
    return {
        "series": series,
        "leg": leg,
        "points": packed.count,
        "full": packed.count >= ENOUGH,
        "first_step": packed.first_step,
        "first_time": packed.first_time,
        "last_step": packed.last_step,
        "last_time": packed.last_time,
        "last_value": plain(packed.last_value),
        "bad": packed.bad,
        "min_value": packed.low,
        "min_step": packed.low_step,
        "max_value": packed.high,
        "max_step": packed.high_step,
        "summary": packed.summary,
        "data": packed.data,
    }


# ── series rows ───────────────────────────────────────────────────────────────

_UPDATED = (
    *("points", "leg", "leg_first", "top_step", "top_time", "last_step", "last_time", "last_value"),
    *("min_value", "min_step", "max_value", "max_step", "loose", "version"),
)
_UPDATE = update(_series).where(_series.c.id == bindparam("b_id")).values({name: bindparam(f"b_{name}") for name in _UPDATED})


def _ensure_series(batch: Batch, wanted: set[tuple[int, str]]) -> dict[tuple[int, str], dict[str, Any]]:
    rows = _load_series(batch, wanted)
    missing = sorted(wanted - rows.keys())
    if missing:
        blank = {
            **dict.fromkeys(("points", "leg", "leg_first", "loose"), 0),
            "top_step": NOTHING,
            "top_time": NOTHING,
            "version": batch.version,
        }
        batch.connection.execute(insert(_series), [{**blank, "run": run, "key": key} for run, key in missing])
        rows |= _load_series(batch, set(missing))
    return rows


def _load_series(batch: Batch, wanted: set[tuple[int, str]]) -> dict[tuple[int, str], dict[str, Any]]:
    by_run: dict[int, list[str]] = {}
    for run, key in wanted:
        by_run.setdefault(run, []).append(key)
    found: dict[tuple[int, str], dict[str, Any]] = {}
    keys = {key for _, key in wanted}
    if len(keys) <= 20 and len(by_run) <= _AT_ONCE:  # many runs that log the same few metrics: one question for all
        questions = [(list(by_run), list(keys))]
    else:
        questions = [([run], names[i : i + _AT_ONCE]) for run, names in by_run.items() for i in range(0, len(names), _AT_ONCE)]
    for runs, names in questions:
        for row in batch.connection.execute(select(_series).where(_series.c.run.in_(runs), _series.c.key.in_(names))).mappings():
            if (row["run"], row["key"]) in wanted:
                found[row["run"], row["key"]] = dict(row)
    return found


def _account(row: dict[str, Any], part: _Part, packed: list[Packed]) -> bool:
    """Add new chunks to a series' row; True where what shows must be worked out from all chunks."""
    first, top, leg = packed[0].first_step, packed[-1], part.leg
    unclear = row["leg"] not in (0, leg) or leg < part.newest
    row["points"] += sum(p.count for p in packed)
    row["loose"] += sum(p.count < ENOUGH for p in packed)
    if (top.last_step, top.last_time) > (row["top_step"], row["top_time"]):
        row["top_step"], row["top_time"] = top.last_step, top.last_time
    if leg > row["leg"]:
        row["leg"], row["leg_first"] = leg, first
    elif leg == row["leg"] and first < row["leg_first"]:
        row["leg_first"] = first
        unclear = unclear or leg > 1
    if not unclear:
        for one in packed:
            merge_values(row, Shown.of(one))
    return unclear


# ── points without sequence numbers ───────────────────────────────────────────


def _without_repeats(batch: Batch, row: dict[str, Any], part: _Part) -> Columns:
    """A point is the same as another if step, time and value are: it is stored once, however often a client sends it."""
    if not part.doubtful:
        return part.all()
    told = in_order(joined(part.doubtful))
    stamps = list(zip(told.steps, told.times, strict=True))
    frontier = (row["top_step"], row["top_time"])
    if stamps[0] > frontier and all(a < b for a, b in itertools.pairwise(stamps)):
        return joined([*part.columns, told])
    seen = _stored(batch, row["id"], stamps[0], min(stamps[-1], frontier)) if stamps[0] <= frontier else set()
    keep: list[int] = []
    for index, value in enumerate(told.values):
        name = (*stamps[index], _bits(value))
        if name not in seen:
            seen.add(name)
            keep.append(index)
    told = Columns([told.steps[i] for i in keep], [told.times[i] for i in keep], [told.values[i] for i in keep])
    return joined([*part.columns, told])


def _stored(batch: Batch, series: int, first: tuple[int, int], last: tuple[int, int]) -> set[tuple[int, int, float | str]]:
    """The points of a series between two (step, time)."""
    c = _chunks.c
    begins = or_(c.first_step < last[0], and_(c.first_step == last[0], c.first_time <= last[1]))
    ends = or_(c.last_step > first[0], and_(c.last_step == first[0], c.last_time >= first[1]))
    found: set[tuple[int, int, float | str]] = set()
    for (data,) in batch.connection.execute(select(c.data).where(c.series == series, begins, ends)):
        columns = unpack(data)
        found.update(
            (s, t, _bits(v)) for s, t, v in zip(columns.steps, columns.times, columns.values, strict=True) if first <= (s, t) <= last
        )
    return found


def _bits(value: float) -> float | str:
    return "nan" if math.isnan(value) else value
