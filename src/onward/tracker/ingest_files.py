"""Run folders on shared storage, tailed: their journals and spools, by byte offset, and TensorBoard's files beside them.

How far a file was read is stored in the transaction that stores what was read, so nothing is taken twice or lost, whoever dies when. A torn
last line waits for its rest; a file that vanished is forgotten; one that became shorter, or another, is read anew, and what it repeats is
known by its numbers. Where nothing changed, a look costs a few stat calls a run; two for a run that has been over for a while.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select

from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir, leg_of, runs_under
from onward.sdk import contract
from onward.sdk.by_hand import hand_id
from onward.tracker import schema
from onward.tracker.by_hand import SOURCE
from onward.tracker.db import Database
from onward.tracker.folding import write_run
from onward.tracker.hand_watch import HandWatch
from onward.tracker.ingest import run_row, take_records
from onward.tracker.legs import upsert
from onward.tracker.records import Reading, read_lines
from onward.tracker.runs import NewRun, create_run
from onward.tracker.tensorboard import EventFiles
from onward.tracker.writer import Batch, Writer

log = logging.getLogger(__name__)

_MOST_BYTES = 4 << 20  # of a file, in one transaction
_HEAD = 256  # bytes by which a file is known again
_SETTLED = 600.0  # seconds after which a run that is over is not looked into any more
_positions = schema.positions
_WRITER = re.compile(r"^leg-\d+\.(.+)\.jsonl$")


@dataclass(kw_only=True)
class Looked:
    """What one look found. `problems`: folders and lines that cannot be read, in words."""

    runs: int = 0
    changed: int = 0
    points: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Position:
    offset: int = 0
    size: int = -1
    head: str = ""
    life: float | None = None


@dataclass(kw_only=True)
class _Known:
    """A folder as it was left at the last look."""

    run_id: str = ""
    over: bool = False
    positions: dict[str, _Position] = field(default_factory=dict)
    folders: tuple[int, int] = (0, 0)  # when journal/ and spool/ changed
    changed: float = 0.0
    refused: set[str] = field(default_factory=set)
    rival: RunDir | None = None  # another folder of the same run, which counts


class Files:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._known: dict[Path, _Known] = {}
        self._events = EventFiles(database, writer)
        self._hands = HandWatch(database, writer)
        self._guard = threading.Lock()

    def look(self, roots: Iterable[Path]) -> Looked:
        """Take what is new under these runs folders. One look at a time."""
        looked = Looked()
        with self._guard:
            for root in roots:
                for dir, by_hand in _folders(root):
                    looked.runs += 1
                    try:
                        self._look_at(dir, by_hand, looked)
                        self._look_at_events(dir, looked)
                    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                        looked.problems.append(f"{dir.path} cannot be read as a run: {error!r}")
            self._hands.look(time.time())
        return looked

    def _look_at_events(self, dir: RunDir, looked: Looked) -> None:
        """TensorBoard's files, once the journals have told of the legs."""
        known = self._known[dir.path]
        if not known.run_id or known.rival:
            return
        quiet = known.over and time.time() - known.changed > _SETTLED
        seen = self._events.look(dir.tensorboard, known.run_id, by_lives=False, quiet=quiet)
        looked.points += seen.points
        looked.problems += seen.problems

    # ── one folder ────────────────────────────────────────────────────────────

    def _look_at(self, dir: RunDir, by_hand: bool, looked: Looked) -> None:
        known = self._known.setdefault(dir.path, _Known())
        if known.rival and known.rival.is_run():
            return
        folders = (_changed(dir.journals), _changed(dir.spool))
        if known.over and folders == known.folders and time.time() - known.changed > _SETTLED:
            return
        sizes = {**_sizes(dir.journals, "journal"), **_sizes(dir.spool, "spool")}
        if not known.run_id:
            self._remember(dir, by_hand, known)
        grown = [name for name, size in sizes.items() if size != known.positions.get(name, _Position()).size]
        gone = [name for name in known.positions if name not in sizes]
        if not grown and not gone and known.run_id:
            known.folders = folders
            return
        known.changed = time.time()
        looked.changed += 1
        if not known.run_id or any(name.startswith("journal/") for name in grown):
            self._take_journals(dir, by_hand, known, {n: s for n, s in sizes.items() if n.startswith("journal/")})
        if known.rival:
            looked.problems.append(f"{dir.path} is the run of {known.rival.path} too, and is not read; delete one of them")
            return
        for name in grown:
            if name.startswith("spool/"):
                self._take_spool(dir, known, name, looked)
        if gone:
            self._forget(known, gone)
        known.folders = folders

    def _remember(self, dir: RunDir, by_hand: bool, known: _Known) -> None:
        """How far this folder was read before this process began."""
        run_id = hand_id(dir.path) if by_hand else ""
        with self._database.reading() as connection:
            runs = schema.runs.c
            term = runs.run_id == run_id if by_hand else runs.folder == str(dir.path)
            row = connection.execute(select(runs.id, runs.run_id, runs.state).where(term)).first()
            if row is None:
                return
            known.run_id, known.over = row.run_id, row.state in ("finished", "failed", "cancelled")
            for at in connection.execute(select(_positions).where(_positions.c.run == row.id)):
                if not at.file.startswith(("journal/", "spool/")):
                    continue
                known.positions[at.file] = _Position(offset=at.offset, size=at.size, head=at.head, life=at.life)

    def _take_journals(self, dir: RunDir, by_hand: bool, known: _Known, sizes: Mapping[str, int]) -> None:
        """Journals are small and say one thing together: all are read whenever one has grown."""
        if by_hand:
            name = re.sub(r"^[\d-]+_\d+_(.+)_\d+$", r"\1", dir.path.name)
            new = NewRun(run_id=hand_id(dir.path), name=name, source=SOURCE, folder=str(dir.path), started=dir.path.stat().st_mtime)
            self._writer.do(lambda batch: create_run(batch, new, new.run_id))
            known.run_id = new.run_id
            return
        run = read_run(dir)
        known.rival = self._rival(dir, run.spec.id)
        if known.rival:
            return
        told = {name: _Position(offset=size, size=size) for name, size in sizes.items()}

        def job(batch: Batch) -> None:
            row = write_run(batch, run, str(dir.path))
            _save(batch, row["id"], told)

        self._writer.do(job)
        known.run_id, known.over = run.spec.id, run.state.over
        known.positions |= told

    def _rival(self, dir: RunDir, run_id: str) -> RunDir | None:
        """A copied folder is no run of its own; a moved one is the same."""
        with self._database.reading() as connection:
            held = connection.execute(select(schema.runs.c.folder).where(schema.runs.c.run_id == run_id)).scalar()
        return RunDir(Path(held)) if held and held != str(dir.path) and RunDir(Path(held)).is_run() else None

    def _take_spool(self, dir: RunDir, known: _Known, name: str, looked: Looked) -> None:
        path = dir.path / name
        leg, writer = leg_of(path.name), _WRITER.match(path.name)
        if leg is None or writer is None:
            known.positions[name] = _Position(size=path.stat().st_size)
            return
        while True:
            at = known.positions.get(name, _Position())
            try:
                size, head, data = _read(path, at)
            except FileNotFoundError:
                return
            if head is None:  # not the file it was
                looked.problems.append(f"{path} is not the file it was; it is read anew")
                at = _Position()
                size, head, data = _read(path, at)
            whole = data.rfind(b"\n") + 1
            reading = read_lines(data[:whole].split(b"\n")) if whole else Reading()
            after = _Position(offset=at.offset + whole, size=size, head=head or "", life=at.life)
            job = partial(_take, run=known.run_id, name=name, leg=leg, writer=writer[1], reading=reading, before=at, after=after)
            taken = self._writer.submit(job, weight=len(reading.records)).result()
            if taken is None:  # another server was here first: go on from where it is
                known.positions[name] = self._stored_position(known.run_id, name)
                return
            answer, known.positions[name] = taken
            looked.points += answer.points
            if answer.refused and name not in known.refused:
                known.refused.add(name)
                looked.problems.append(f"{path}: {answer.refused} lines are passed over: {answer.why}")
            if not whole or at.offset + len(data) >= size:
                return

    def _stored_position(self, run: str, name: str) -> _Position:
        with self._database.reading() as connection:
            c = _positions.c
            query = select(_positions).join(schema.runs, schema.runs.c.id == c.run).where(schema.runs.c.run_id == run, c.file == name)
            row = connection.execute(query).first()
        return _Position(offset=row.offset, size=-1, head=row.head, life=row.life) if row else _Position()

    def _forget(self, known: _Known, names: list[str]) -> None:
        """Files that are no more. What was read of them stays."""

        def job(batch: Batch) -> None:
            c = _positions.c
            batch.connection.execute(delete(_positions).where(c.run == run_row(batch, known.run_id)["id"], c.file.in_(names)))

        self._writer.do(job)
        for name in names:
            del known.positions[name]


def _take(batch: Batch, *, run: str, name: str, leg: int, writer: str, reading: Reading, before: _Position, after: _Position) -> Any:
    """Records and position in one transaction; None if the stored position is not the one that was read from."""
    row = run_row(batch, run)
    c = _positions.c
    held = batch.connection.execute(select(c.offset).where(c.run == row["id"], c.file == name)).scalar()
    if held is not None and held != before.offset and before.offset != 0:
        return None
    answer, life = take_records(batch, row, leg, writer, reading, life=before.life)
    after = _Position(offset=after.offset, size=after.size, head=after.head, life=life)
    _save(batch, row["id"], {name: after})
    return answer, after


def _save(batch: Batch, run: int, told: Mapping[str, _Position]) -> None:
    rows = [{"run": run, "file": n, "offset": p.offset, "size": p.size, "head": p.head, "life": p.life} for n, p in told.items()]
    upsert(batch, _positions, rows, keys=("run", "file"), change=("offset", "size", "head", "life"))


def _read(path: Path, at: _Position) -> tuple[int, str | None, bytes]:
    """Size, head and what is new; head None: the file is shorter than it was, or begins otherwise."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_HEAD)
        if at.head:
            length, digest = at.head.split(":")
            if size < at.offset or _digest(start[: int(length)]) != digest:
                return size, None, b""
        file.seek(at.offset)
        data = file.read(_MOST_BYTES)
        while data and b"\n" not in data and (more := file.read(_MOST_BYTES)):  # a line longer than that
            data += more
    return size, f"{len(start)}:{_digest(start)}", data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _folders(root: Path) -> list[tuple[RunDir, bool]]:
    ours = [(dir, False) for dir in runs_under(root)]
    try:
        by_hand = [(RunDir(path), True) for path in sorted((root / contract.BY_HAND).iterdir()) if (path / "spool").is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        by_hand = []
    return ours + by_hand


def _sizes(folder: Path, room: str) -> dict[str, int]:
    try:
        with os.scandir(folder) as entries:
            return {f"{room}/{e.name}": e.stat().st_size for e in entries if e.name.endswith(".jsonl") and e.is_file()}
    except FileNotFoundError:
        return {}


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
