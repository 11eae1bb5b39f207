"""Reading series: charts at a resolution, raw points, and what was superseded.

A chart says for each bucket the lowest, the highest and the mean value, so that no spike is lost; and how many points there really are.
Where the points in the range are fewer than the buckets asked for, they are the buckets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, case, func, or_, select

from onward.errors import InvalidInput, NotFound
from onward.tracker import schema
from onward.tracker.chunks import GRAIN, Columns, in_order, read_summary, unpack
from onward.tracker.db import Database
from onward.tracker.points import joined
from onward.tracker.run_rows import Metric, metric_of
from onward.tracker.runs import one_run
from onward.tracker.stitch import first_steps, limits

_runs, _series, _chunks, _legs = schema.runs, schema.series, schema.chunks, schema.legs
_MOST_BUCKETS = 100_000

Span = tuple[int | None, int | None]  # first and last step, both counted in; None: open


@dataclass(kw_only=True)
class Chart:
    """One series, drawn. Columns side by side, in the order of steps; `step` and `time` are of a bucket's first point.

    `low`, `high` and `mean` are of finite values, None where a bucket has none; `bad` counts NaN and ±Inf, and `odd` says which of them
    it is, by place, where each bucket is one point. `points`: how many show in the range; `exact`: each bucket is one
    point; `superseded`: how many of the series a later leg has hidden. `first` and `last`: the range, both counted in.
    `total`: how many points the series has, the hidden too. `legs`: where each leg that shows goes on.
    """

    run: str
    key: str
    first: int | None = None
    last: int | None = None
    total: int = 0
    began: float | None = None  # the run's start
    legs: list[tuple[int, int]] = field(default_factory=list)  # number, its first step in this series
    steps: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    lows: list[float | None] = field(default_factory=list)
    highs: list[float | None] = field(default_factory=list)
    means: list[float | None] = field(default_factory=list)
    bads: list[int] = field(default_factory=list)
    odd: dict[int, float] = field(default_factory=dict)
    points: int = 0
    superseded: int = 0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class RawPoint:
    step: int
    time: float
    value: float
    leg: int
    superseded: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk of which something shows in the range; `limit`: up to which step; `cut`: only a part of it."""

    id: int
    count: int
    first_step: int
    limit: int | None
    cut: bool
    summary: bytes
    data: bytes | None


class Series:
    def __init__(self, database: Database) -> None:
        self._database = database

    def metrics(self, run: str) -> dict[str, Metric]:
        """The series of a run in short, by key."""
        with self._database.reading() as connection:
            inner = one_run(connection, run).inner
            rows = connection.execute(
                select(_series).where(_series.c.run == inner, _series.c.last_step.is_not(None)).order_by(_series.c.key)
            )
            return {row.key: metric_of(row) for row in rows}

    def chart(self, run: str, key: str, *, buckets: int = 1000, first: int | None = None, last: int | None = None) -> Chart:
        """One series between two steps (both counted in). NotFound where the run has none of that key."""
        found = self.charts([run], [key], buckets=buckets, first=first, last=last)
        if not found:
            raise NotFound(f"run {run} has no metric {key!r}")
        return found[0]

    def charts(
        self, runs: Sequence[str], keys: Sequence[str], *, buckets: int = 1000, first: int | None = None, last: int | None = None,
        spans: Mapping[str, Span] | None = None,
    ) -> list[Chart]:  # fmt: skip
        """Every series of these runs and keys that there is; those in `spans` in a range of their own. An unknown run is NotFound."""
        if not 1 <= buckets <= _MOST_BUCKETS:
            raise InvalidInput(f"a chart has 1 to {_MOST_BUCKETS} buckets, not {buckets}")
        with self._database.reading() as connection:
            wanted = _series_of(connection, runs, keys)
            for chart, _ in wanted.values():
                chart.first, chart.last = (spans or {}).get(chart.run, (first, last))
            pieces = _pieces(connection, wanted)
            return [_draw(connection, chart, pieces[id], buckets) for id, (chart, _) in wanted.items()]

    def points(
        self, run: str, key: str, *, first: int | None = None, last: int | None = None, superseded: bool = False,
        limit: int | None = None, offset: int = 0,
    ) -> list[RawPoint]:  # fmt: skip
        """Raw points in the order of (step, time); with those that a later leg has hidden, if asked for. An unknown key has none."""
        with self._database.reading() as connection:
            wanted = _series_of(connection, [run], [key])
            found: list[RawPoint] = []
            for id, (_, shown) in wanted.items():
                for row in connection.execute(_overlapping(id, first, last)):
                    columns = unpack(row.data).since(first).upto(last)
                    limit_step = shown.get(row.leg)
                    for s, t, v in zip(columns.steps, columns.times, columns.values, strict=True):
                        hidden = limit_step is not None and s > limit_step
                        if superseded or not hidden:
                            found.append(RawPoint(s, t / 1e6, v, row.leg, hidden))
        found.sort(key=lambda p: (p.step, p.time))
        return found[offset : None if limit is None else offset + limit]


def _overlapping(series: int, first: int | None, last: int | None) -> Any:
    c = _chunks.c
    query = select(c.leg, c.data).where(c.series == series)
    if first is not None:
        query = query.where(c.last_step >= first)
    if last is not None:
        query = query.where(c.first_step <= last)
    return query.order_by(c.leg, c.first_step, c.id)


def _series_of(connection: Connection, runs: Sequence[str], keys: Sequence[str]) -> dict[int, tuple[Chart, dict[int, int | None]]]:
    """The series that there are, with how much of each leg shows; by inner id, in the order asked for."""
    c = _runs.c
    told: dict[str, tuple[int, float | None]] = {}
    names = list(dict.fromkeys(runs))
    for i in range(0, len(names), 500):
        some = names[i : i + 500]
        query = select(c.id, c.run_id, c.hex_id, c.started).where(or_(c.run_id.in_(some), c.hex_id.in_(some)))
        for row in connection.execute(query):
            told[row.run_id] = told[row.hex_id] = (row.id, row.started)
    missing = [name for name in names if name not in told]
    if missing:
        raise NotFound(f"there is no run {missing[0]!r}")
    inner = {told[name][0]: name for name in names}
    ids = list(inner)
    resumed: dict[int, dict[int, int]] = {}
    rows: list[Any] = []
    firsts: dict[int, list[tuple[int, int]]] = {}
    for i in range(0, len(ids), 500):
        some_ids = ids[i : i + 500]
        for leg in connection.execute(
            select(_legs.c.run, _legs.c.leg, _legs.c.resumed_step).where(_legs.c.run.in_(some_ids), _legs.c.resumed_step.is_not(None))
        ):
            resumed.setdefault(leg.run, {})[leg.leg] = leg.resumed_step
        mine = select(_series).where(_series.c.run.in_(some_ids), _series.c.key.in_(list(keys)))
        rows += connection.execute(mine).all()
    for i in range(0, len(rows), 500):
        lowest = select(_chunks.c.series, _chunks.c.leg, func.min(_chunks.c.first_step)).where(
            _chunks.c.series.in_([r.id for r in rows[i : i + 500]])
        )
        for id, leg_number, step in connection.execute(lowest.group_by(_chunks.c.series, _chunks.c.leg)):
            firsts.setdefault(id, []).append((leg_number, step))
    places = {(inner_id, key): n for n, (inner_id, key) in enumerate((r, k) for r in inner for k in keys)}
    found: dict[int, tuple[Chart, dict[int, int | None]]] = {}
    for row in sorted(rows, key=lambda r: places[r.run, r.key]):
        begins = first_steps(firsts.get(row.id, ()))
        shown = limits(row.key, begins, resumed.get(row.run, {}))
        chart = Chart(run=inner[row.run], key=row.key, total=row.points, began=told[inner[row.run]][1])
        chart.legs = [(leg, step) for leg, step in sorted(begins.items()) if _shows(step, shown[leg])]
        found[row.id] = (chart, shown)
    return found


def _shows(step: int, limit: int | None) -> bool:
    return limit is None or step <= limit


def _pieces(connection: Connection, wanted: dict[int, tuple[Chart, dict[int, int | None]]]) -> dict[int, list[_Piece]]:
    """The chunks of which something shows. Their summaries come with them; their points only where they have no summary."""
    c = _chunks.c
    found: dict[int, list[_Piece]] = {id: [] for id in wanted}
    small = case((func.length(c.summary) == 0, c.data), else_=None)
    ids = list(wanted)
    for i in range(0, len(ids), 500):
        query = select(c.series, c.id, c.leg, c.points, c.first_step, c.last_step, c.summary, small.label("data"))
        query = query.where(c.series.in_(ids[i : i + 500])).order_by(c.series, c.leg, c.first_step, c.id)
        for row in connection.execute(query):
            chart, shown = wanted[row.series]
            first, last, limit = chart.first, chart.last, shown[row.leg]
            if limit is not None and row.first_step > limit:
                chart.superseded += row.points
                continue
            outside = (first is not None and row.last_step < first) or (last is not None and row.first_step > last)
            hidden = limit is not None and row.last_step > limit
            if outside and not hidden:
                continue
            edge = (first is not None and row.first_step < first) or (last is not None and row.last_step > last)
            found[row.series].append(_Piece(row.id, row.points, row.first_step, limit, hidden or edge, row.summary, row.data))
    return found


def _draw(connection: Connection, chart: Chart, pieces: list[_Piece], buckets: int) -> Chart:
    pieces = sorted(pieces, key=lambda piece: piece.first_step)
    parts: dict[int, Columns] = {}  # of which the points themselves are needed
    _unpack_into(connection, parts, chart, [piece for piece in pieces if piece.cut or piece.data])
    sizes = [len(parts[p.id]) if p.id in parts else p.count for p in pieces]
    grains = sum(-(-size // GRAIN) for size in sizes)
    if sum(sizes) <= 4 * buckets or grains < buckets / 4:  # else the summaries say enough, and are much faster
        _unpack_into(connection, parts, chart, [piece for piece in pieces if piece.id not in parts])
        return _draw_points(chart, joined([parts[piece.id] for piece in pieces]), buckets)
    lines = _Lines()
    for piece in pieces:
        if piece.id in parts:
            lines.add_points(parts[piece.id])
            chart.points += len(parts[piece.id])
        else:
            lines.add_summary(piece.summary, piece.count)
            chart.points += piece.count
    chart.exact = False
    lines.into(chart, buckets)
    return chart


def _unpack_into(connection: Connection, parts: dict[int, Columns], chart: Chart, pieces: list[_Piece]) -> None:
    """The points of these chunks that show in the range."""
    loaded = _load(connection, [piece.id for piece in pieces if piece.data is None])
    for piece in pieces:
        columns = unpack(piece.data or loaded[piece.id])
        kept = columns.upto(piece.limit)
        chart.superseded += len(columns) - len(kept)
        parts[piece.id] = kept.since(chart.first).upto(chart.last)


def _draw_points(chart: Chart, columns: Columns, buckets: int) -> Chart:
    whole = in_order(columns)
    chart.points = count = len(whole)
    if count <= buckets:
        chart.steps, chart.times = list(whole.steps), [t / 1e6 for t in whole.times]
        finite = [v if math.isfinite(v) else None for v in whole.values]
        chart.lows, chart.highs, chart.means = finite, list(finite), list(finite)
        chart.bads = [int(v is None) for v in finite]
        chart.odd = {i: whole.values[i] for i, v in enumerate(finite) if v is None}
        return chart
    chart.exact = False
    lines = _Lines()
    lines.add_points(whole, grain=-(-count // buckets))
    lines.into(chart, buckets)
    return chart


def _load(connection: Connection, ids: list[int]) -> dict[int, bytes]:
    c = _chunks.c
    found: dict[int, bytes] = {}
    for i in range(0, len(ids), 500):
        found.update((row.id, row.data) for row in connection.execute(select(c.id, c.data).where(c.id.in_(ids[i : i + 500]))))
    return found


class _Lines:
    """Entries as a summary has them, of many chunks, and then fewer of them."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.times: list[int] = []
        self.lows: list[float] = []
        self.highs: list[float] = []
        self.sums: list[float] = []
        self.goods: list[int] = []  # finite values in each
        self.bads: list[int] = []

    def add_summary(self, data: bytes, count: int) -> None:
        summary = read_summary(data)
        self.steps += summary.steps
        self.times += summary.times
        self.lows += summary.lows
        self.highs += summary.highs
        self.sums += summary.sums
        self.bads += summary.bads
        sizes = [GRAIN] * (len(summary) - 1) + [count - GRAIN * (len(summary) - 1)]
        self.goods += [size - bad for size, bad in zip(sizes, summary.bads, strict=True)] if any(summary.bads) else sizes

    def add_points(self, columns: Columns, grain: int = GRAIN) -> None:
        for i in range(0, len(columns), grain):
            part: Sequence[float] = columns.values[i : i + grain]
            size = len(part)
            if not math.isfinite(sum(part)):
                part = [v for v in part if math.isfinite(v)]
            self.steps.append(columns.steps[i])
            self.times.append(columns.times[i])
            self.lows.append(min(part, default=math.inf))
            self.highs.append(max(part, default=-math.inf))
            self.sums.append(sum(part))
            self.goods.append(len(part))
            self.bads.append(size - len(part))

    def into(self, chart: Chart, buckets: int) -> None:
        every = -(-len(self.steps) // buckets)
        if any(map(int.__gt__, self.steps, self.steps[1:])):  # chunks that overlap: not yet compacted
            self._sort()
        starts = range(0, len(self.steps), every)
        chart.steps = self.steps[::every]
        chart.times = [t / 1e6 for t in self.times[::every]]
        lows = [min(self.lows[i : i + every]) for i in starts]
        highs = [max(self.highs[i : i + every]) for i in starts]
        goods = [sum(self.goods[i : i + every]) for i in starts]
        sums = [sum(self.sums[i : i + every]) for i in starts]
        chart.bads = [sum(self.bads[i : i + every]) for i in starts]
        chart.lows = [low if good else None for low, good in zip(lows, goods, strict=True)]
        chart.highs = [high if good else None for high, good in zip(highs, goods, strict=True)]
        chart.means = [_mean(s, g, low, high) for s, g, low, high in zip(sums, goods, lows, highs, strict=True)]

    def _sort(self) -> None:
        rows = sorted(
            zip(self.steps, self.times, self.lows, self.highs, self.sums, self.goods, self.bads, strict=True), key=lambda row: row[:2]
        )
        columns: Iterable[Any] = zip(*rows, strict=True)
        self.steps, self.times, self.lows, self.highs, self.sums, self.goods, self.bads = (list(column) for column in columns)


def _mean(total: float, count: int, low: float, high: float) -> float | None:
    if not count:
        return None
    mean = total / count
    return mean if math.isfinite(mean) else low / 2 + high / 2  # a sum of values near the greatest there are
