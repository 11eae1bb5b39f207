"""Reading series: charts at a resolution, raw points, and what was superseded.

A chart says for each bucket the lowest, the highest and the mean value, so that no spike is lost; and how many points there really are.
Where the points in the range are fewer than the buckets asked for, they are the buckets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, case, func, or_, select

from onward.errors import InvalidInput, NotFound
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.runs.registry import one_run
from onward.tracker.runs.rows import Metric, metric_of
from onward.tracker.series.chart_lines import ChartLines
from onward.tracker.series.chunks import GRAIN, Columns, in_order, pack, unpack
from onward.tracker.series.point_writer import joined
from onward.tracker.series.stitch import first_steps, limits
from onward.tracker.series.wide.overlay import Tail, tails_of

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
class _Wanted:
    """A series that is asked for. `shown`: how much of each leg; `tail`: points that are not in chunks yet."""

    chart: Chart
    shown: dict[int, int | None]
    tail: Tail


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
        with self._database.reading_points() as connection:
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
            raise InvalidInput(f"a chart can have 1 to {_MOST_BUCKETS} buckets, not {buckets}")
        with self._reading() as connection:
            wanted = _series_of(connection, runs, keys, tails=self._database.is_file)
            for one in wanted.values():
                one.chart.first, one.chart.last = (spans or {}).get(one.chart.run, (first, last))
            pieces = _pieces(connection, wanted)
            return [_draw(connection, one.chart, pieces[id], buckets) for id, one in wanted.items()]

    def points(
        self, run: str, key: str, *, first: int | None = None, last: int | None = None, superseded: bool = False,
        limit: int | None = None, offset: int = 0,
    ) -> list[RawPoint]:  # fmt: skip
        """Raw points in the order of (step, time); with those that a later leg has hidden, if asked for. An unknown key has none."""
        with self._reading() as connection:
            wanted = _series_of(connection, [run], [key], tails=self._database.is_file)
            found: list[RawPoint] = []
            for id, one in wanted.items():
                stored = [(row.leg, unpack(row.data)) for row in connection.execute(_overlapping(id, first, last))]
                for leg, points in [*stored, *one.tail]:
                    columns = points.since(first).upto(last)
                    limit_step = one.shown.get(leg)
                    for s, t, v in zip(columns.steps, columns.times, columns.values, strict=True):
                        hidden = limit_step is not None and s > limit_step
                        if superseded or not hidden:
                            found.append(RawPoint(s, t / 1e6, v, leg, hidden))
        found.sort(key=lambda p: (p.step, p.time))
        return found[offset : None if limit is None else offset + limit]

    def _reading(self) -> AbstractContextManager[Connection]:
        """Of a file, all queries see one moment: then a tail can be read as it is."""
        return self._database.reading() if self._database.is_file else self._database.reading_points()


def _overlapping(series: int, first: int | None, last: int | None) -> Any:
    c = _chunks.c
    query = select(c.leg, c.data).where(c.series == series)
    if first is not None:
        query = query.where(c.last_step >= first)
    if last is not None:
        query = query.where(c.first_step <= last)
    return query.order_by(c.leg, c.first_step, c.id)


def _series_of(connection: Connection, runs: Sequence[str], keys: Sequence[str], *, tails: bool) -> dict[int, _Wanted]:
    """The series that there are, by inner id, in the order asked for. `tails`: with what is not in chunks yet."""
    c = _runs.c
    by_name: dict[str, tuple[int, float | None]] = {}
    names = list(dict.fromkeys(runs))
    for i in range(0, len(names), 500):
        some = names[i : i + 500]
        query = select(c.id, c.run_id, c.hex_id, c.started).where(or_(c.run_id.in_(some), c.hex_id.in_(some)))
        for row in connection.execute(query):
            by_name[row.run_id] = by_name[row.hex_id] = (row.id, row.started)
    missing = [name for name in names if name not in by_name]
    if missing:
        raise NotFound(f"there is no run {missing[0]!r}")
    inner = {by_name[name][0]: name for name in names}
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
    waiting = tails_of(connection, {(row.run, row.key): row.id for row in rows}) if tails else {}
    for id, tail in waiting.items():
        firsts.setdefault(id, []).extend((leg, columns.steps[0]) for leg, columns in tail)
    places = {(inner_id, key): n for n, (inner_id, key) in enumerate((r, k) for r in inner for k in keys)}
    found: dict[int, _Wanted] = {}
    for row in sorted(rows, key=lambda r: places[r.run, r.key]):
        begins = first_steps(firsts.get(row.id, ()))
        shown = limits(row.key, begins, resumed.get(row.run, {}))
        tail = waiting.get(row.id, [])
        total = row.points + sum(len(columns) for _, columns in tail)
        chart = Chart(run=inner[row.run], key=row.key, total=total, began=by_name[inner[row.run]][1])
        chart.legs = [(leg, step) for leg, step in sorted(begins.items()) if _shows(step, shown[leg])]
        found[row.id] = _Wanted(chart, shown, tail)
    return found


def _shows(step: int, limit: int | None) -> bool:
    return limit is None or step <= limit


def _pieces(connection: Connection, wanted: dict[int, _Wanted]) -> dict[int, list[_Piece]]:
    """The chunks of which something shows. Their summaries come with them; their points only where they have no summary."""
    c = _chunks.c
    found: dict[int, list[_Piece]] = {id: [] for id in wanted}
    small = case((func.length(c.summary) == 0, c.data), else_=None)
    ids = list(wanted)
    for i in range(0, len(ids), 500):
        query = select(c.series, c.id, c.leg, c.points, c.first_step, c.last_step, c.summary, small.label("data"))
        query = query.where(c.series.in_(ids[i : i + 500])).order_by(c.series, c.leg, c.first_step, c.id)
        for row in connection.execute(query):
            if piece := _piece(wanted[row.series], row.leg, row.first_step, row.last_step, row.id, row.points, row.summary, row.data):
                found[row.series].append(piece)
    for series, one in wanted.items():
        for n, (leg, columns) in enumerate(one.tail, 1):  # as chunks that are loaded already; none has such an id
            if piece := _piece(one, leg, columns.steps[0], columns.steps[-1], -n, len(columns), b"", pack(columns).data):
                found[series].append(piece)
    return found


def _piece(
    wanted: _Wanted, leg: int, first_step: int, last_step: int, id: int, count: int, summary: bytes, data: bytes | None
) -> _Piece | None:
    """None where nothing of the chunk shows in the range."""
    chart = wanted.chart
    first, last, limit = chart.first, chart.last, wanted.shown[leg]
    if limit is not None and first_step > limit:
        chart.superseded += count
        return None
    outside = (first is not None and last_step < first) or (last is not None and first_step > last)
    hidden = limit is not None and last_step > limit
    if outside and not hidden:
        return None
    edge = (first is not None and first_step < first) or (last is not None and last_step > last)
    return _Piece(id, count, first_step, limit, hidden or edge, summary, data)


def _draw(connection: Connection, chart: Chart, pieces: list[_Piece], buckets: int) -> Chart:
    pieces = sorted(pieces, key=lambda piece: piece.first_step)
    parts: dict[int, Columns] = {}  # of which the points themselves are needed
    _unpack_into(connection, parts, chart, [piece for piece in pieces if piece.cut or piece.data])
    sizes = [len(parts[p.id]) if p.id in parts else p.count for p in pieces]
    grains = sum(-(-size // GRAIN) for size in sizes)
    if sum(sizes) <= 4 * buckets or grains < buckets / 4:  # else the summaries say enough, and are much faster
        _unpack_into(connection, parts, chart, [piece for piece in pieces if piece.id not in parts])
        return _draw_points(chart, joined([parts[piece.id] for piece in pieces]), buckets)
    lines = ChartLines()
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
    lines = ChartLines()
    lines.add_points(whole, grain=-(-count // buckets))
    lines.into(chart, buckets)
    return chart


def _load(connection: Connection, ids: list[int]) -> dict[int, bytes]:
    c = _chunks.c
    found: dict[int, bytes] = {}
    for i in range(0, len(ids), 500):
        found.update((row.id, row.data) for row in connection.execute(select(c.id, c.data).where(c.id.in_(ids[i : i + 500]))))
    return found
