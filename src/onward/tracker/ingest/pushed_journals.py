"""Run folders that nobody here can read: whoever can sends their journals and spools, as pieces of files.

A piece is known by run, file and byte offset, the same by which a folder is tailed; so it may be sent twice, and both ways at once change
nothing. The answer says from where to go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from onward.errors import InvalidInput
from onward.model.events import Event, parse_event
from onward.model.run import fold
from onward.model.spec import RunSpec, spec_from_json
from onward.model.storable_text import clean
from onward.rundir.layout import leg_of
from onward.rundir.packed_lines import SkeletonMemory, UnknownSkeleton, unpack_lines
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.journals_to_rows import write_run
from onward.tracker.ingest.receive import run_row, take_records
from onward.tracker.ingest.spool_records import read_lines
from onward.tracker.runs.legs import upsert

_FILE = re.compile(r"(?:journal/[\w.-]{1,200}|spool/leg-\d{4,9}\.[\w.-]{1,200})\.jsonl")
_runs, _events, _positions = schema.runs, schema.events, schema.positions


class PushedJournals:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._skeletons = SkeletonMemory()

    def announce(self, spec: Mapping[str, Any]) -> str:
        """A run of ours, by its spec as params/spec.json holds it; its id. Said again, it changes nothing."""
        try:
            made = spec_from_json(spec)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"this is not a run's spec: {error!r}", hint="send params/spec.json unchanged") from error
        self._writer.do(lambda batch: _announce(batch, made))
        return made.id

    def piece(self, run: str, file: str, offset: int, data: bytes) -> int:
        """Take a piece of a file; the offset from which to send next. Only whole lines are taken; what is known already is passed over."""
        if not _FILE.fullmatch(file) or offset < 0:
            raise InvalidInput(
                f"{file[:80]!r} from {offset} is not a piece of a run's journals or spools", hint="such as journal/leg-0001.jsonl"
            )
        return self._writer.submit(lambda batch: _take(batch, run, file, offset, data), weight=1 + len(data) // 100).result()

    def packed_piece(self, run: str, file: str, offset: int, body: bytes) -> int | None:
        """The same of lines of a spool that come packed; None where they must be sent again, with all of their skeletons."""
        try:
            return self.piece(run, file, offset, unpack_lines(body, self._skeletons))
        except UnknownSkeleton:
            return None
        except ValueError as error:
            raise InvalidInput(f"a piece of {file[:80]!r} cannot be unpacked: {error}", hint="send it as plain lines") from error

    def spec_and_events(self, run: str) -> tuple[Mapping[str, Any] | None, list[Event]]:
        """The spec and the events that were sent of a run; no spec where it was never announced."""
        with self._database.reading() as connection:
            row = connection.execute(select(_runs.c.id, _runs.c.details).where(_runs.c.run_id == run)).first()
            lines = connection.execute(select(_events.c.line).where(_events.c.run == row.id)).scalars().all() if row else []
        spec = json.loads(row.details).get("spec") if row else None
        return spec, [event for event in map(_event, lines) if event]


def _announce(batch: Batch, spec: RunSpec) -> None:
    if batch.connection.execute(select(_runs.c.id).where(_runs.c.run_id == spec.id)).first() is None:
        write_run(batch, fold(spec, []), None)


def _take(batch: Batch, run: str, file: str, offset: int, data: bytes) -> int:
    row = run_row(batch, run)
    c = _positions.c
    held = batch.connection.execute(select(c.offset, c.life).where(c.run == row["id"], c.file == file)).first()
    at, life = (held.offset, held.life) if held else (0, None)
    if offset > at:
        return int(at)
    data = data[at - offset :]
    whole = data.rfind(b"\n") + 1
    if not whole:
        return int(at)
    lines = data[:whole].split(b"\n")[:-1]
    if file.startswith("spool/"):
        name = file.removeprefix("spool/")
        leg = leg_of(name) or 1
        writer = name.split(".", 1)[1].removesuffix(".jsonl")
        _, life = take_records(batch, row, leg, writer, read_lines(lines), life=life)
    else:
        _take_events(batch, row, file, at, lines)
    position = {"run": row["id"], "file": file, "offset": at + whole, "size": -1, "head": "", "life": life}
    upsert(batch, _positions, [position], keys=("run", "file"), change=("offset", "size", "head", "life"))
    return int(at + whole)


def _take_events(batch: Batch, row: Mapping[str, Any], file: str, at: int, lines: list[bytes]) -> None:
    """Keep the lines, and have the run's rows say what all of them say."""
    rows = []
    for line in lines:
        rows.append({"run": row["id"], "file": file, "offset": at, "line": clean(line.decode(errors="replace"))})
        at += len(line) + 1
    upsert(batch, _events, rows, keys=("run", "file", "offset"))
    details = json.loads(batch.connection.execute(select(_runs.c.details).where(_runs.c.id == row["id"])).scalar_one())
    if "spec" not in details:
        raise InvalidInput(f"run {row['run_id']} was not announced by its spec", hint="send that first")
    known_lines = batch.connection.execute(select(_events.c.line).where(_events.c.run == row["id"])).scalars()
    write_run(batch, fold(spec_from_json(details["spec"]), [event for event in map(_event, known_lines) if event]), None)


def _event(line: str) -> Event | None:
    try:
        return parse_event(line)
    except (ValueError, TypeError, AttributeError):
        return None
