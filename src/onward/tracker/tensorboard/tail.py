"""TensorBoard's event files of a run, tailed: scalars, all of them, by byte offset, as `ingest.folders` tails spools.

How far a file was read is stored in the transaction that stores what was read. What is torn at the end waits for its rest; what is
damaged is passed over, and said in a note on the run, with file and offset.

A run that Onward executes has one folder for all legs; a file is of the leg that had started when it was begun. A metric that the
training also logs another way (SDK, MLflow) is taken from there, and not from the files, so that nothing counts twice. In a folder that
is imported, legs are told apart by the files themselves: `tensorboard.legs`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sqlalchemy import delete, func, select

from onward.rundir.event_files.frames import Damage, read_frames
from onward.rundir.event_files.scalar_events import read_event
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.receive import run_row
from onward.tracker.tensorboard.event_folder import EventFilePosition, EventFolder
from onward.tracker.tensorboard.legs import FileProgress, key_prefixes, leg_at
from onward.tracker.tensorboard.store_events import ROOM, damage_text, store_events

_PIECE = 1 << 20
_MOST = 256 << 20  # bytes of a record that is still read
_SLACK = 1.0  # seconds by which a leg's last file may come after its end
_LONGEST_NAME = 480
_positions, _legs, _series, _chunks = schema.positions, schema.legs, schema.series, schema.chunks


@dataclass(kw_only=True)
class EventFileScan:
    """What one look at a folder found. `torn`: files whose end is not whole, with the offset up to which they are read."""

    points: int = 0
    problems: list[str] = field(default_factory=list)
    torn: dict[str, int] = field(default_factory=dict)


class EventFiles:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._known: dict[str, dict[str, EventFilePosition]] = {}

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

    def _look(self, folder: EventFolder, run: str, by_lives: bool, quiet: bool, seen: EventFileScan) -> None:
        files = folder.files(deep=not by_lives)
        if run not in self._known:
            if files or quiet:
                self._known[run] = self._remember(run, by_lives) if files else {}
            else:
                return
        known = self._known[run]
        changed = [name for name, size in files.items() if size != known.get(name, EventFilePosition()).size]
        gone = [name for name in known if name not in files]
        for name in changed:
            if known.get(name, EventFilePosition()).begun is None:
                begun = folder.begun(name)
                known[name] = EventFilePosition(begun=begun, size=files[name] if begun is None else -1)
                if begun is None and files[name]:
                    seen.torn[str(folder.folder / name)] = 0
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
                self._take(folder, run, name, None if by_lives else of[name], begins[_folder(name), of[name]], seen)
        if gone:
            self._forget(run, known, gone)

    # ── one file ──────────────────────────────────────────────────────────────

    def _take(self, folder: EventFolder, run: str, name: str, leg: int | None, prefix: str, seen: EventFileScan) -> None:
        known, path = self._known[run], folder.folder / name
        piece = _PIECE
        if len(name) > _LONGEST_NAME:
            seen.problems.append(f"the name of {path} is too long, so it is not read")
            return
        while True:
            at = known[name]
            try:
                size, head, data = folder.read(name, at, piece)
            except FileNotFoundError:
                return
            if head is None:
                seen.problems.append(f"{path} was replaced; it is read again from the start")
                at = known[name] = EventFilePosition(begun=folder.begun(name))
                size, head, data = folder.read(name, at, piece)
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
            job = partial(store_events, run=run, name=name, events=events, prefix=prefix, leg=leg, before=at, after=after, damaged=damaged)
            taken = self._writer.submit(job, weight=max(len(events), 1)).result()
            if taken is None:  # another was here first: go on from where it is
                known[name] = self._remember(run, leg is None).get(name, EventFilePosition(begun=at.begun))
                return
            points, refused, known[name] = taken
            seen.points += points
            seen.problems += [f"{path}: {damage_text(one)}" for one in damaged]
            if refused and not at.refused:
                seen.problems.append(f"{path}: the metric {refused[:60]!r} has a name that cannot be stored, so it is ignored")
                known[name] = replace(known[name], refused=True)
            if not rest or not used:
                if after.offset < size:
                    seen.torn[str(path)] = after.offset
                return

    # ── what is known ─────────────────────────────────────────────────────────

    def _remember(self, run: str, by_lives: bool) -> dict[str, EventFilePosition]:
        """How far the files were read before this process began."""
        found: dict[str, EventFilePosition] = {}
        with self._database.reading() as connection:
            c = _positions.c
            rows = connection.execute(
                select(_positions).join(schema.runs, schema.runs.c.id == c.run).where(schema.runs.c.run_id == run, c.file.startswith(ROOM))
            ).all()
            for row in rows:
                name = row.file.removeprefix(ROOM)
                found[name] = EventFilePosition(offset=row.offset, size=-1, head=row.head, begun=row.life)
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

    def _forget(self, run: str, known: dict[str, EventFilePosition], names: Sequence[str]) -> None:
        """Files that are no more. What was read of them stays."""

        def job(batch: Batch) -> None:
            c = _positions.c
            files = [ROOM + name for name in names]
            batch.connection.execute(delete(_positions).where(c.run == run_row(batch, run)["id"], c.file.in_(files)))

        self._writer.do(job)
        for name in names:
            del known[name]


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
