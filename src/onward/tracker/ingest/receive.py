"""Taking points and records in. Acknowledged means committed; sent twice means stored once.

Two kinds of writers. Ours number their records: (run, leg, writer, sequence) is a record's identity, whichever way it comes, as a file
that is tailed or over HTTP. Others (MLflow's clients, the seeds' calls) do not: there a point is the same as another of its series
if step, time (to the microsecond) and value are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update

from onward.errors import InvalidInput, NotFound
from onward.model.metric import Point
from onward.model.storable_text import check_key, is_plain
from onward.tracker import schema
from onward.tracker.db.raw_sql import execute_many, fetch, marks, names, update_by_id
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.relay_records import take_relay_record
from onward.tracker.ingest.sequences import Sequences
from onward.tracker.ingest.spool_records import ParsedRecords, SpoolRecord, read_records
from onward.tracker.runs.legs import ensure_leg
from onward.tracker.runs.params import write_params, write_tags
from onward.tracker.runs.summaries import take_gpu_use
from onward.tracker.series.chunks import Columns
from onward.tracker.series.point_writer import PointBatch, write_points
from onward.tracker.series.stitch import SYSTEM_PREFIX
from onward.tracker.series.wide.tails import WIDE, Wide, WideRows, add_to_tail, has_room, settle_these
from onward.tracker.unmanaged.records import SOURCE, take_unmanaged

_runs, _writers = schema.runs, schema.writers
_MOST_STEP = (1 << 63) - 1


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """What became of a delivery. `refused`: records that are none, with the reason of the first."""

    points: int = 0
    repeated: int = 0
    refused: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Item:
    run: str
    leg: int | None
    columns: Mapping[str, Columns]
    count: int
    live: bool = False


class Ingest:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._group = _PointGroup()

    def points(self, run: str, points: Iterable[Point], *, leg: int | None = None) -> IngestResult:
        """Points of a writer that does not number them. `leg` None: the run's newest. Waits for the commit."""
        return self.submit(run, points, leg=leg).result()

    def submit(self, run: str, points: Iterable[Point], *, leg: int | None = None, ring: bool = True) -> Future[IngestResult]:
        """The same without waiting: the future is done once the points are committed. Raises InvalidInput at once."""
        columns, count = to_columns(points)
        return self.submit_columns(run, columns, count, leg=leg, ring=ring)

    def submit_columns(
        self, run: str, columns: Mapping[str, Columns], count: int, *, leg: int | None = None, live: bool = False, ring: bool = True
    ) -> Future[IngestResult]:
        """The same of points that were checked. `live`: an archived run takes none, InvalidInput says so.

        Without `ring` they wait until the caller, with whatever else it has brought by then, calls `work_here`.
        """
        return self._writer.submit_to(self._group, _Item(run, leg, columns, count, live), weight=max(count, 1), ring=ring)

    def work_here(self) -> None:
        self._writer.work_here()

    def records(self, run: str, leg: int, writer: str, records: Sequence[Mapping[str, Any]]) -> IngestResult:
        """Records as a spool holds them: {"n": sequence, "t": time, "s": step, "m": {metric: value}} and kinds of their own.

        A line that is no record is passed over and counted; nothing else of the delivery is lost by it.
        """
        reading = read_records(records)
        return self._writer.submit(
            lambda batch: take_records(batch, run_row(batch, run), leg, writer, reading)[0], weight=len(records)
        ).result()


def to_columns(points: Iterable[Point]) -> tuple[dict[str, Columns], int]:
    """By key, with times in microseconds. Raises InvalidInput for what cannot be stored."""
    columns: dict[str, Columns] = {}
    count = 0
    try:
        for key, step, time, value in points:
            held = columns.get(key)
            if held is None:
                check_key(key, "a metric")
                held = columns[key] = Columns([], [], [])
            if not -_MOST_STEP - 1 <= step <= _MOST_STEP:
                raise InvalidInput(f"metric {key!r}: step {step} does not fit into 64 bits", hint="steps count from 0")
            held.steps.append(step)  # type: ignore[attr-defined]
            held.times.append(round(time * 1e6))  # type: ignore[attr-defined]
            held.values.append(value)  # type: ignore[attr-defined]
            count += 1
    except (OverflowError, ValueError) as error:
        raise InvalidInput(f"a point cannot be stored: {error}", hint="times are in unix seconds") from error
    return columns, count


def run_row(batch: Batch, run: str) -> dict[str, Any]:
    """Inner id, newest leg and state of a run by either of its ids."""
    found = _run_rows(batch, [run])
    if run not in found:
        raise no_run(run)
    return found[run]


def no_run(run: str) -> NotFound:
    return NotFound(f"there is no run {run!r}", hint="create it first")


def put_away(run: str) -> InvalidInput:
    return InvalidInput(f"The run {run} must be in the 'active' state. Current state is deleted.", hint="restore it first")


_RUN = ("id", "run_id", "hex_id", "leg", "last_step", "source", "state", "archived")
_TOUCH = update_by_id("runs", ("version", "updated", "last_step"))


def _run_rows(batch: Batch, listed: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    listed = [name for name in listed if is_plain(name)]
    for i in range(0, len(listed), 500):
        some = listed[i : i + 500]
        text = f"SELECT {names(_RUN)} FROM runs WHERE run_id IN ({marks(len(some))}) OR hex_id IN ({marks(len(some))})"
        for values in fetch(batch.connection, text, [*some, *some]):
            row = dict(zip(_RUN, values, strict=True))
            found[row["run_id"]] = found[row["hex_id"]] = row
    return found


def touch(batch: Batch, steps: Mapping[int, int | None]) -> None:
    """Mark runs as changed by this commit, with the highest step they have."""
    execute_many(batch.connection, _TOUCH, [(batch.version, batch.now, step, run) for run, step in steps.items()])


def _add_wide(batch: Batch, run: int, wide: Wide, record: SpoolRecord) -> bool:
    """Whether it is a record of thousands of metrics, which is kept whole for a while."""
    if len(record.metrics) < WIDE or record.prefix:
        return False
    names = tuple(record.metrics)
    if names not in wide:
        if not has_room(batch, run, names):
            return False
        wide[names] = WideRows()
    wide[names].add(record.step, round(record.t * 1e6), record.metrics.values())
    return True


def _highest(before: int | None, columns: Mapping[str, Columns], wide: Wide | None = None) -> int | None:
    steps = [max(c.steps) for key, c in columns.items() if len(c) and not key.startswith(SYSTEM_PREFIX)]
    steps += [max(rows.steps) for rows in (wide or {}).values()]
    return max([*steps, *([] if before is None else [before])], default=None)


class _PointGroup:
    def run(self, batch: Batch, items: list[_Item]) -> list[IngestResult | Exception]:
        rows = _run_rows(batch, list({item.run for item in items}))
        deliveries: list[PointBatch] = []
        steps: dict[int, int | None] = {}
        answers: list[IngestResult | Exception] = []
        for item in items:
            row = rows.get(item.run)
            if row is None:
                answers.append(no_run(item.run))
                continue
            if item.live and row["archived"] is not None:
                answers.append(put_away(row["hex_id"]))
                continue
            leg = item.leg or max(row["leg"], 1)
            newest = ensure_leg(batch, row, leg)
            deliveries.append(PointBatch(row["id"], leg, newest, item.columns, False))
            steps[row["id"]] = _highest(steps.get(row["id"], row["last_step"]), item.columns)
            answers.append(IngestResult(points=item.count))
        total = sum(answer.points for answer in answers if isinstance(answer, IngestResult))
        settle_these(batch, {delivery.run for delivery in deliveries})
        written = write_points(batch, deliveries)
        touch(batch, steps)
        if written != total and len(items) == 1:
            answers = [IngestResult(points=written, repeated=total - written)]
        return answers


# ── numbered records ──────────────────────────────────────────────────────────


def take_records(
    batch: Batch, row: dict[str, Any], leg: int, writer: str, reading: ParsedRecords, life: float | None = None
) -> tuple[IngestResult, float]:
    """Those of the records that are new, and the writer's life. `life`: when its record 0 was written, where that is known."""
    newest = ensure_leg(batch, row, leg)
    lives = _Lives(batch, row["id"], leg, writer, life)
    columns: dict[str, Columns] = {}
    wide: Wide = {}
    gpus: list[tuple[float, float]] = []
    repeated = 0
    taken: list[SpoolRecord] = []
    for record in reading.records:
        if not lives.take(record.n, record.t):
            repeated += 1
            continue
        taken.append(record)
        if not _add_wide(batch, row["id"], wide, record):
            record.add_to(columns)
        if (use := record.gpu_use) is not None:
            gpus.append((record.t, use))
        if record.params:
            write_params(batch, row["id"], leg, record.params)
        if record.tags:
            write_tags(batch, row["id"], record.tags)
        if record.relayed:
            take_relay_record(batch, row["id"], record.t, record.relayed)
        if record.total:
            batch.connection.execute(update(_runs).where(_runs.c.id == row["id"]).values(total_steps=record.total))
    lives.save()
    if row["source"] == SOURCE:
        take_unmanaged(batch, row, leg, taken)
    take_gpu_use(batch, row["id"], gpus)
    written = write_points(batch, [PointBatch(row["id"], leg, newest, columns, True)])
    written += add_to_tail(batch, row["id"], leg, wide) if wide else 0
    touch(batch, {row["id"]: _highest(row["last_step"], columns, wide)})
    return IngestResult(points=written, repeated=repeated, refused=reading.refused, why=reading.why), lives.life


class _Lives:
    """Which records of a writer were taken. A process number may come twice within a leg: then record 0 comes again, with another time."""

    def __init__(self, batch: Batch, run: int, leg: int, writer: str, life: float | None) -> None:
        self._batch = batch
        self._name = {"run": run, "leg": leg, "writer": writer}
        c = _writers.c
        held = batch.connection.execute(select(c.life, c.seen).where(c.run == run, c.leg == leg, c.writer == writer)).all()
        self._known = {row.life: Sequences(row.seen) for row in held}
        self._stored = set(self._known)
        self._changed: set[float] = set()
        self.life = life if life is not None else max(self._known, default=0.0)

    def take(self, n: int | None, t: float) -> bool:
        if n is None:
            return True
        if n == 0 and t != self.life:
            if self.life == 0.0 and 0.0 in self._known and 0 not in self._known[0.0]:
                self._rename(t)  # its later records came first
            self.life = t
        if not self._known.setdefault(self.life, Sequences()).add(n):
            return False
        self._changed.add(self.life)
        return True

    def _rename(self, life: float) -> None:
        self._known[life] = self._known.pop(0.0)
        self._changed.add(life)
        if 0.0 in self._stored:
            c = _writers.c
            where = (c.run == self._name["run"], c.leg == self._name["leg"], c.writer == self._name["writer"], c.life == 0.0)
            self._batch.connection.execute(update(_writers).where(*where).values(life=life))
            self._stored = {life if known == 0.0 else known for known in self._stored}

    def save(self) -> None:
        c = _writers.c
        for life in self._changed & self._known.keys():
            seen = str(self._known[life])
            if life in self._stored:
                where = (c.run == self._name["run"], c.leg == self._name["leg"], c.writer == self._name["writer"], c.life == life)
                self._batch.connection.execute(update(_writers).where(*where).values(seen=seen))
            else:
                self._batch.connection.execute(insert(_writers), [{**self._name, "life": life, "seen": seen}])
