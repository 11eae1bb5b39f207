"""TensorBoard's event files of a run, tailed: scalars, all of them, by byte offset, as `ingest_files` tails spools.

How far a file was read is stored in the transaction that stores what was read. What is torn at the end waits for its rest; what is
damaged is passed over, and said in a note on the run, with file and offset.

A run that Onward executes has one folder for all legs; a file is of the leg that had started when it was begun. A metric that the
training also logs another way (SDK, MLflow) is taken from there, and not from the files, so that nothing counts twice. In a folder that
is imported, legs are told apart by the files themselves: `tensorboard_lives`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import delete, func, insert, select

from onward.rundir.files.no_links import open_folder_beneath, reading
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.receive import run_row, touch
from onward.tracker.runs.legs import ensure_leg, upsert
from onward.tracker.runs.registry import write_legs
from onward.tracker.series.point_writer import PointBatch, write_points
from onward.tracker.series.wide.tails import settle_these
from onward.tracker.tensorboard.frames import Damage, read_frames
from onward.tracker.tensorboard.legs import FileProgress, LegEvents, all_of_one_leg, is_storable_key, key_prefixes, leg_at, split_into_legs
from onward.tracker.tensorboard.scalar_events import ScalarEvent, read_event

_ROOM = "tensorboard/"  # begins the names of these files among the positions
_PIECE = 1 << 20
_MOST = 256 << 20  # bytes of a record that is still read
_HEAD = 256
_SLACK = 1.0  # seconds by which a leg's last file may come after its end
_LONGEST_NAME = 480
_MOST_TOLD = 20  # damaged places that one note names
_NAMED_TIME = re.compile(r"tfevents\.(\d{9,11})")
_positions, _legs, _series, _chunks, _own = schema.positions, schema.legs, schema.series, schema.chunks, schema.event_series


@dataclass(kw_only=True)
class EventFileScan:
    """What one look at a folder found. `torn`: files whose end is not whole, with the offset up to which they are read."""

    points: int = 0
    problems: list[str] = field(default_factory=list)
    torn: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _At:
    """A file as it was left. `begun`: the time of its first event; None: it has none yet."""

    offset: int = 0
    size: int = -1
    head: str = ""
    begun: float | None = None
    life: FileProgress = field(default_factory=FileProgress)
    refused: bool = False


class EventFiles:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._known: dict[str, dict[str, _At]] = {}

    def look(self, folder: Path, run: str, *, root: Path | None, by_lives: bool, quiet: bool = False) -> EventFileScan:
        """Take what is new. `root`: below it no link is followed; None: the caller chose the folder, and links to files count.

        `by_lives`: a folder by itself, without those below it, that alone knows of its legs. `quiet`: nothing writes there any more; once
        looked through, it is left alone.
        """
        seen = EventFileScan()
        if quiet and run in self._known:
            return seen
        try:
            self._look(EventFolder(folder, root), run, by_lives, quiet, seen)
        except BaseException:
            self._known.pop(run, None)  # what is stored counts
            raise
        return seen

    def forget(self, run: str) -> None:
        """Of a run that is left alone: what is stored says how far its files were read."""
        self._known.pop(run, None)

    def _look(self, place: EventFolder, run: str, by_lives: bool, quiet: bool, seen: EventFileScan) -> None:
        files = place.files(deep=not by_lives)
        if run not in self._known:
            if files or quiet:
                self._known[run] = self._remember(run, by_lives) if files else {}
            else:
                return
        known = self._known[run]
        changed = [name for name, size in files.items() if size != known.get(name, _At()).size]
        gone = [name for name in known if name not in files]
        for name in changed:
            if known.get(name, _At()).begun is None:
                begun = place.begun(name)
                known[name] = _At(begun=begun, size=files[name] if begun is None else -1)
                if begun is None and files[name]:
                    seen.torn[str(place.folder / name)] = 0
        if changed:
            legs = {} if by_lives else self._legs(run)
            starts = {leg: start for leg, (start, _) in legs.items()}
            order = sorted((at.begun, name) for name, at in known.items() if at.begun is not None and name in files)
            of = {name: leg_at(begun, starts) for begun, name in order}
            begins = key_prefixes((_folder(name), of[name]) for _, name in order)
            for begun, name in order:
                ended = legs[of[name]][1] if legs else None
                if name not in changed or (ended is not None and begun > ended + _SLACK and not quiet):
                    continue  # of a leg whose journal is not to be seen from here yet
                self._take(place, run, name, None if by_lives else of[name], begins[_folder(name), of[name]], seen)
        if gone:
            self._forget(run, known, gone)

    # ── one file ──────────────────────────────────────────────────────────────

    def _take(self, place: EventFolder, run: str, name: str, leg: int | None, prefix: str, seen: EventFileScan) -> None:
        known, path = self._known[run], place.folder / name
        piece = _PIECE
        if len(name) > _LONGEST_NAME:
            seen.problems.append(f"{path} has too long a name, and is not read")
            return
        while True:
            at = known[name]
            try:
                size, head, data = place.read(name, at, piece)
            except FileNotFoundError:
                return
            if head is None:
                seen.problems.append(f"{path} is not the file it was; it is read anew")
                at = known[name] = _At(begun=place.begun(name))
                size, head, data = place.read(name, at, piece)
            frames = read_frames(data, at.offset, read_event)
            rest = size - at.offset - len(data)
            used, damaged = frames.used, list(frames.damaged)
            if rest and not used:
                if max(frames.wanted, piece * 2) <= _MOST:
                    piece = max(frames.wanted, piece * 2)
                    continue
                if frames.wanted and at.offset + frames.wanted > size:
                    used = 0  # longer than anything, and not whole yet
                else:
                    used = frames.wanted or len(data) - 11
                    damaged.append(Damage(at.offset, used))
            after = replace(at, offset=at.offset + used, size=size, head=head or "")
            events = [event for _, event in frames.found if event.values or event.begins]
            job = partial(_store, run=run, name=name, events=events, prefix=prefix, leg=leg, before=at, after=after, damaged=damaged)
            taken = self._writer.submit(job, weight=max(len(events), 1)).result()
            if taken is None:  # another was here first: go on from where it is
                known[name] = self._remember(run, leg is None).get(name, _At(begun=at.begun))
                return
            points, refused, known[name] = taken
            seen.points += points
            seen.problems += [f"{path}: {_words(one)}" for one in damaged]
            if refused and not at.refused:
                seen.problems.append(f"{path}: the metric {refused[:60]!r} has no name that can be stored, and is passed over")
                known[name] = replace(known[name], refused=True)
            if not rest or not used:
                if after.offset < size:
                    seen.torn[str(path)] = after.offset
                return

    # ── what is known ─────────────────────────────────────────────────────────

    def _remember(self, run: str, by_lives: bool) -> dict[str, _At]:
        """How far the files were read before this process began."""
        found: dict[str, _At] = {}
        with self._database.reading() as connection:
            c = _positions.c
            rows = connection.execute(
                select(_positions).join(schema.runs, schema.runs.c.id == c.run).where(schema.runs.c.run_id == run, c.file.startswith(_ROOM))
            ).all()
            for row in rows:
                name = row.file.removeprefix(_ROOM)
                found[name] = _At(offset=row.offset, size=-1, head=row.head, begun=row.life)
            if by_lives and rows:
                inner = rows[0].run
                for leg in connection.execute(select(_legs.c.leg, _legs.c.details).where(_legs.c.run == inner).order_by(_legs.c.leg)):
                    details = json.loads(leg.details)
                    name = details.get("file", "")
                    if name in found:
                        found[name] = replace(found[name], life=FileProgress(leg=leg.leg, turns=details.get("turns", 0)))
                for name, at in found.items():
                    top = (
                        select(_series.c.key, func.max(_chunks.c.last_step).label("last"))
                        .join(_chunks, _chunks.c.series == _series.c.id)
                        .where(_series.c.run == inner, _chunks.c.leg == at.life.leg)
                        .group_by(_series.c.key)
                    )
                    last = {row.key: row.last for row in connection.execute(top)}
                    found[name] = replace(at, life=replace(at.life, last=last))
        return found

    def _legs(self, run: str) -> dict[int, tuple[float, float | None]]:
        """When they started and ended."""
        with self._database.reading() as connection:
            query = select(_legs.c.leg, _legs.c.started, _legs.c.ended).join(schema.runs, schema.runs.c.id == _legs.c.run)
            rows = connection.execute(query.where(schema.runs.c.run_id == run, _legs.c.started.is_not(None)))
            return {row.leg: (row.started, row.ended) for row in rows}

    def _forget(self, run: str, known: dict[str, _At], names: Sequence[str]) -> None:
        """Files that are no more. What was read of them stays."""

        def job(batch: Batch) -> None:
            c = _positions.c
            files = [_ROOM + name for name in names]
            batch.connection.execute(delete(_positions).where(c.run == run_row(batch, run)["id"], c.file.in_(files)))

        self._writer.do(job)
        for name in names:
            del known[name]


# ── inside a transaction ──────────────────────────────────────────────────────


def _store(
    batch: Batch,
    *,
    run: str,
    name: str,
    events: Sequence[ScalarEvent],
    prefix: str,
    leg: int | None,
    before: _At,
    after: _At,
    damaged: Sequence[Damage],
) -> tuple[int, str, _At] | None:
    """Points and position; None if the stored position is not the one that was read from."""
    row = run_row(batch, run)
    c = _positions.c
    held = batch.connection.execute(select(c.offset).where(c.run == row["id"], c.file == _ROOM + name)).scalar()
    if held is not None and held != before.offset and before.offset != 0:
        return None
    if leg is None:
        found, life = split_into_legs(events, before.life, row["leg"])
        after = replace(after, life=life)
    else:
        found = [all_of_one_leg(events, leg)]
    deliveries: list[PointBatch] = []
    refused = ""
    for stretch in found:
        columns = {prefix + tag: told for tag, told in stretch.columns.items() if is_storable_key(prefix + tag)}
        refused = refused or next((tag for tag in stretch.columns if not is_storable_key(prefix + tag)), "")
        if leg is None:
            write_legs(batch, row, [_leg_row(stretch, name)])
            row["leg"] = max(row["leg"], stretch.leg)
        elif columns:
            columns = _not_logged_otherwise(batch, row["id"], columns)
            row["leg"] = ensure_leg(batch, row, leg)
        deliveries.append(PointBatch(row["id"], stretch.leg, row["leg"], columns, False))
    settle_these(batch, {delivery.run for delivery in deliveries})
    written = write_points(batch, deliveries)
    keys = {key for delivery in deliveries for key in delivery.columns}
    if keys:
        if leg is not None:
            _now_ours(batch, row["id"], keys)
        steps = [max(told.steps) for delivery in deliveries for told in delivery.columns.values()]
        touch(batch, {row["id"]: max([*steps, *([] if row["last_step"] is None else [row["last_step"]])])})
    if damaged:
        _note(batch, row["id"], name, damaged)
    place = {"run": row["id"], "file": _ROOM + name, "offset": after.offset, "size": after.size, "head": after.head, "life": after.begun}
    upsert(batch, _positions, [place], keys=("run", "file"), change=("offset", "size", "head", "life"))
    return written, refused, after


def _leg_row(stretch: LegEvents, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"leg": stretch.leg, "state": "finished", "details": json.dumps({"file": name, "turns": stretch.turns})}
    if stretch.started:
        row["started"] = stretch.started
    if stretch.ended:
        row["ended"] = stretch.ended
    return row if stretch.resumed is None else {**row, "resumed_step": stretch.resumed}


def _not_logged_otherwise(batch: Batch, run: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Without the metrics that have points which did not come from event files."""
    logged = _points(batch, run, columns)
    c = _own.c
    ours: dict[str, int] = {}
    for some in _by_500(columns):
        ours |= {row.key: row.points for row in batch.connection.execute(select(c.key, c.points).where(c.run == run, c.key.in_(some)))}
    return {key: told for key, told in columns.items() if logged.get(key, 0) <= ours.get(key, 0)}


def _now_ours(batch: Batch, run: int, keys: Iterable[str]) -> None:
    rows = [{"run": run, "key": key, "points": points} for key, points in _points(batch, run, keys).items()]
    upsert(batch, _own, rows, keys=("run", "key"), change=("points",))


def _points(batch: Batch, run: int, keys: Iterable[str]) -> dict[str, int]:
    c = _series.c
    found: dict[str, int] = {}
    for some in _by_500(keys):
        found |= {row.key: row.points for row in batch.connection.execute(select(c.key, c.points).where(c.run == run, c.key.in_(some)))}
    return found


def _by_500(keys: Iterable[str]) -> list[list[str]]:
    names = list(keys)
    return [names[i : i + 500] for i in range(0, len(names), 500)]


def _note(batch: Batch, run: int, name: str, damaged: Sequence[Damage]) -> None:
    told = "; ".join(_words(one) for one in damaged[:_MOST_TOLD]) + (
        f"; and {len(damaged) - _MOST_TOLD} more" * (len(damaged) > _MOST_TOLD)
    )
    values = {"run": run, "at": batch.now, "author": "onward", "text": f"TensorBoard file {name}: {told}"}
    batch.connection.execute(insert(schema.notes), [values])


def _words(one: Damage) -> str:
    return f"{one.length} bytes at byte {one.offset} are damaged and are passed over; what follows is read"


# ── files ─────────────────────────────────────────────────────────────────────


def is_event_file(name: str) -> bool:
    """TensorBoard's own rule."""
    return "tfevents" in name


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


@dataclass(frozen=True)
class EventFolder:
    """A folder of event files. Below its `root`, no link is followed."""

    folder: Path
    root: Path | None

    def files(self, *, deep: bool) -> dict[str, int]:
        """Event files and their sizes, by path relative to the folder. Links to folders are not followed."""
        found: dict[str, int] = {}
        below = [""]
        while below:
            inside = below.pop()
            try:
                with self._listed(inside) as entries:
                    for entry in entries:
                        name = f"{inside}{entry.name}"
                        if is_event_file(entry.name) and entry.is_file(follow_symlinks=self.root is None):
                            found[name] = entry.stat().st_size
                        elif deep and entry.is_dir(follow_symlinks=False):
                            below.append(f"{name}/")
            except (FileNotFoundError, NotADirectoryError):
                continue
        return found

    def begun(self, name: str) -> float | None:
        """The time of a file's first event; None where it has none yet."""
        try:
            with self._open(name) as file:
                data = file.read(1 << 16)
        except FileNotFoundError:
            return None
        frames = read_frames(data, 0, read_event)
        if not frames.found:
            return None
        named = _NAMED_TIME.search(name.rpartition("/")[2])
        return frames.found[0][1].time or (float(named[1]) if named else 0.0)

    def read(self, name: str, at: _At, piece: int) -> tuple[int, str | None, bytes]:
        """Size, head and what is new; head None: the file is shorter than it was, or begins otherwise."""
        with self._open(name) as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(_HEAD)
            if at.head:
                length, digest = at.head.split(":")
                if size < at.offset or _digest(start[: int(length)]) != digest:
                    return size, None, b""
            file.seek(at.offset)
            return size, f"{len(start)}:{_digest(start)}", file.read(min(piece, max(size - at.offset, 0)))

    @contextlib.contextmanager
    def _listed(self, inside: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        if self.root is None:
            with os.scandir(self.folder / inside) as entries:
                yield entries
            return
        with open_folder_beneath(self.root, self.folder / inside) as handle, os.scandir(handle) as entries:
            yield entries

    def _open(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb") if self.root is None else reading(self.root, self.folder / name)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
