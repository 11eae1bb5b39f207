"""Run folders on shared storage, tailed: their journals and spools, by byte offset, and TensorBoard's files beside them.

How far a file was read is stored in the transaction that stores what was read, so nothing is taken twice or lost, whoever dies when. A torn
last line waits for its rest; a file that vanished is forgotten; one that became shorter, or another, is read anew, and what it repeats is
known by its numbers. A run that has been over for a while is left alone: see `intake.rounds`.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select

from onward.errors import OnwardError
from onward.model.run import Run
from onward.rundir.files.no_links import LinkRefused, NotAFile, open_folder_beneath
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir, leg_of
from onward.sdk.unmanaged.folder import unmanaged_run_id
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.folders.ownership import check_owner, owner_of, record_owner
from onward.tracker.ingest.folders.quarantine import Quarantine
from onward.tracker.ingest.folders.rotation import FolderMark
from onward.tracker.ingest.folders.selection import OVER, FolderVisit, OpenFolders, RunFolders
from onward.tracker.ingest.folders.spool_positions import Position, SpoolPiece, positions_of, read_piece, save_positions
from onward.tracker.ingest.journals_to_rows import write_run
from onward.tracker.ingest.receive import run_row, take_records
from onward.tracker.ingest.spool_records import ParsedRecords, read_lines
from onward.tracker.runs.registry import NewRun, create_run
from onward.tracker.tensorboard.tail import EventFiles
from onward.tracker.unmanaged.liveness import UnmanagedWatch
from onward.tracker.unmanaged.records import SOURCE

log = logging.getLogger(__name__)

SETTLED = 600.0  # seconds after which a run that is over is not looked into any more
TURN = 64 << 20  # bytes of one spool in a look: then others have their turn
_MOST_HELD_BACK = 300.0  # seconds for which the end of a run waits until its spools are read
_ASK_EVERY = 60.0  # seconds, whether a silent run by hand is over
_positions = schema.positions
_WRITER = re.compile(r"^leg-\d+\.(.+)\.jsonl$")


@dataclass(kw_only=True)
class FolderTailReport:
    """What one look found. `runs`: folders that were looked at. `more`: a long spool was left in the middle, for the next look.
    `problems`: folders and lines that cannot be read, in words.
    """

    runs: int = 0
    changed: int = 0
    points: int = 0
    more: bool = False
    problems: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class _Known:
    """A folder as it was left at the last look."""

    run_id: str = ""
    over: bool = False
    positions: dict[str, Position] = field(default_factory=dict)
    folders: FolderMark = (0, 0)  # when journal/ and spool/ changed
    changed: float = 0.0
    ended_seen: float = 0.0  # when its journals first said that it is over, while its spools were still being read
    asked: float = 0.0  # when the store was last asked whether a run by hand is over
    refused: set[str] = field(default_factory=set)

    @property
    def settled(self) -> bool:
        return self.over and time.time() - self.changed > SETTLED


class FolderTail:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._known: dict[Path, _Known] = {}
        self._folders = RunFolders(database, settled=SETTLED)
        self._events = EventFiles(database, writer)
        self._hands = UnmanagedWatch(database, writer)
        self.quarantine = Quarantine(database, writer)
        self._guard = threading.Lock()

    def look(self, roots: Iterable[Path]) -> FolderTailReport:
        """Take what is new under these runs folders. One look at a time."""
        looked = FolderTailReport()
        with self._guard:
            self._look(self._folders.visits(roots, looked.problems), looked)
            self.quarantine.keep_only(self._folders.knows)
            self._hands.look(time.time())
        return looked

    def look_at(self, dirs: Iterable[RunDir]) -> FolderTailReport:
        """The same of these folders alone, however many lie beside them."""
        looked = FolderTailReport()
        with self._guard:
            self._look(map(self._folders.visit, dirs), looked)
        return looked

    def _look(self, visits: Iterable[FolderVisit], looked: FolderTailReport) -> None:
        for visit in visits:
            looked.runs += 1
            if not self.quarantine.rests(visit.dir):
                self._try(visit, looked)

    def _try(self, visit: FolderVisit, looked: FolderTailReport) -> None:
        """Whatever is in one folder, the others are read. Trouble of the store itself is not the folder's."""
        try:
            self._visit(visit, looked)
        except Exception as error:
            if isinstance(error, OnwardError) and error.transient:
                raise
            if words := self.quarantine.put(visit.dir, error):
                looked.problems.append(words)
            if isinstance(error, PermissionError):  # somebody else's: as seldom as one that is over
                self._forget_folder(visit, mark=None)
        else:
            self.quarantine.release(visit.dir)

    def open_folders(self) -> OpenFolders | None:
        """What a server has to tend; None before the first look. Does not wait for a look."""
        return self._folders.open_folders()

    # ── one folder ────────────────────────────────────────────────────────────

    def _visit(self, visit: FolderVisit, looked: FolderTailReport) -> None:
        dir = visit.dir
        if visit.mark is not None and visit.mark == _folders_changed(dir):
            return
        if not visit.is_there():
            return
        known = self._known.setdefault(dir.path, _Known())
        self._look_at(dir, visit.by_hand, known, looked)
        if known.run_id:  # TensorBoard's files, once the journals have told of the legs
            seen = self._events.look(dir.tensorboard, known.run_id, root=dir.root, by_lives=False, quiet=known.settled)
            looked.points += seen.points
            looked.problems += seen.problems
        if known.settled:
            self._forget_folder(visit, mark=known.folders)
        else:
            visit.wake()

    def _forget_folder(self, visit: FolderVisit, *, mark: FolderMark | None) -> None:
        """It is at rest: of it, only the mark stays in memory."""
        visit.rest(mark)
        known = self._known.pop(visit.dir.path, None)
        if known:
            self._events.forget(known.run_id)

    def _look_at(self, dir: RunDir, by_hand: bool, known: _Known, looked: FolderTailReport) -> None:
        folders = _folders_changed(dir)
        sizes = {**_sizes(dir, dir.journals), **_sizes(dir, dir.spool)}
        if not known.run_id:
            self._remember(dir, by_hand, known)
        grown = [name for name, size in sizes.items() if size != known.positions.get(name, Position()).size]
        gone = [name for name in known.positions if name not in sizes]
        if not grown and not gone and known.run_id:
            known.folders = folders
            if by_hand and not known.over:
                self._ask_whether_over(known)
            return
        known.changed = time.time()
        looked.changed += 1
        if not known.run_id or any(name.startswith("journal/") for name in grown):
            run = None if by_hand else read_run(dir)
            if run and run.state.over and known.run_id and not known.over and self._has_more_to_read(dir, known, looked):
                return  # the state waits for the rest: whoever sees that the run is over finds its curves whole
            self._take_journals(dir, run, known, {n: s for n, s in sizes.items() if n.startswith("journal/")})
        for name in grown:
            if name.startswith("spool/"):
                self._take_spool(dir, known, name, looked)
        if gone:
            self._forget(known, gone)
        known.folders = folders

    def _has_more_to_read(self, dir: RunDir, known: _Known, looked: FolderTailReport) -> bool:
        """Read the spools of a run that has ended, as they are now. Whether something is left for the next look; not for ever, and not
        where a spool cannot be read."""
        known.ended_seen = known.ended_seen or time.time()
        try:
            for name, size in _sizes(dir, dir.spool).items():
                if size != known.positions.get(name, Position()).size:
                    self._take_spool(dir, known, name, looked)
            left = [name for name, size in _sizes(dir, dir.spool).items() if size != known.positions.get(name, Position()).size]
        except OSError as error:
            log.debug("the end of %s is recorded before its spools are read: %s", dir.path, error)
            return False
        return bool(left) and time.time() - known.ended_seen < _MOST_HELD_BACK

    def _ask_whether_over(self, known: _Known) -> None:
        """Nothing in the folder of a run by hand says that its process is gone; the store knows it from elsewhere."""
        now = time.time()
        if now - known.changed <= SETTLED or now - known.asked <= _ASK_EVERY:
            return
        known.asked = now
        with self._database.reading() as connection:
            state = connection.execute(select(schema.runs.c.state).where(schema.runs.c.run_id == known.run_id)).scalar()
        known.over = state in OVER

    def _remember(self, dir: RunDir, by_hand: bool, known: _Known) -> None:
        """How far this folder was read before this process began."""
        run_id = unmanaged_run_id(dir.path) if by_hand else ""
        with self._database.reading() as connection:
            runs = schema.runs.c
            term = runs.run_id == run_id if by_hand else runs.folder == str(dir.path)
            row = connection.execute(select(runs.id, runs.run_id, runs.state).where(term)).first()
            if row is not None:
                known.run_id, known.over = row.run_id, row.state in OVER
                known.positions = positions_of(connection, row.id)

    def _take_journals(self, dir: RunDir, run: Run | None, known: _Known, sizes: Mapping[str, int]) -> None:
        """Journals are small and say one thing together: all are read whenever one has grown. `run`: None if started by hand."""
        if run is None:
            name = re.sub(r"^[\d-]+_\d+_(.+)_\d+$", r"\1", dir.path.name)
            new = NewRun(
                run_id=unmanaged_run_id(dir.path), name=name, source=SOURCE, folder=str(dir.path), started=dir.path.stat().st_mtime
            )
            self._writer.do(lambda batch: create_run(batch, new, new.run_id))
            known.run_id = new.run_id
            return
        owner = owner_of(dir)
        positions = {name: Position(offset=size, size=size) for name, size in sizes.items()}

        def job(batch: Batch) -> None:
            check_owner(batch.connection, dir, run.spec.id, owner)
            row = write_run(batch, run, str(dir.path))
            record_owner(batch, row["id"], owner)
            save_positions(batch, row["id"], positions)

        self._writer.do(job)
        known.run_id, known.over = run.spec.id, run.state.over
        known.positions |= positions

    def _take_spool(self, dir: RunDir, known: _Known, name: str, looked: FolderTailReport) -> None:
        path = dir.path / name
        leg, writer = leg_of(path.name), _WRITER.match(path.name)
        if leg is None or writer is None:
            known.positions[name] = Position(size=os.lstat(path).st_size)
            return
        read = 0
        while True:
            at = known.positions.get(name, Position())
            try:
                piece = read_piece(dir.root, path, at)
                if piece is None:
                    looked.problems.append(f"{path} was replaced; it is read again from the start")
                    at = Position()
                    piece = read_piece(dir.root, path, at)
                    assert piece is not None
            except FileNotFoundError:
                return
            reading = _read(piece)
            offset = at.offset + piece.used
            after = Position(offset=offset, size=offset if piece.more else piece.size, head=piece.head, life=at.life)
            job = partial(_take, run=known.run_id, name=name, leg=leg, writer=writer[1], reading=reading, before=at, after=after)
            taken = self._writer.submit(job, weight=max(len(piece.lines) // 100, 1)).result()
            if taken is None:  # another server was here first: go on from where it is
                known.positions[name] = self._stored_position(known.run_id, name)
                return
            answer, known.positions[name] = taken
            looked.points += answer.points
            if answer.refused and name not in known.refused:
                known.refused.add(name)
                looked.problems.append(f"{path}: {answer.refused} lines were ignored: {answer.why}")
            read += piece.used
            if not piece.more or read >= TURN:
                looked.more |= piece.more
                return

    def _stored_position(self, run: str, name: str) -> Position:
        with self._database.reading() as connection:
            inner = connection.execute(select(schema.runs.c.id).where(schema.runs.c.run_id == run)).scalar()
            stored = positions_of(connection, inner).get(name) if inner is not None else None
        return replace(stored, size=-1) if stored else Position()

    def _forget(self, known: _Known, names: list[str]) -> None:
        """Files that are no more. What was read of them stays."""

        def job(batch: Batch) -> None:
            c = _positions.c
            batch.connection.execute(delete(_positions).where(c.run == run_row(batch, known.run_id)["id"], c.file.in_(names)))

        self._writer.do(job)
        for name in names:
            del known.positions[name]


def _read(piece: SpoolPiece) -> ParsedRecords:
    reading = read_lines(piece.lines.split(b"\n")) if piece.lines else ParsedRecords()
    if piece.skipped:
        reading.refuse(f"a line of {piece.skipped:,} bytes is too long for a record")
    return reading


def _take(batch: Batch, *, run: str, name: str, leg: int, writer: str, reading: ParsedRecords, before: Position, after: Position) -> Any:
    """Records and position in one transaction; None if the stored position is not the one that was read from."""
    row = run_row(batch, run)
    c = _positions.c
    held = batch.connection.execute(select(c.offset).where(c.run == row["id"], c.file == name)).scalar()
    if held is not None and held != before.offset and before.offset != 0:
        return None
    answer, life = take_records(batch, row, leg, writer, reading, life=before.life)
    after = replace(after, life=life)
    save_positions(batch, row["id"], {name: after})
    return answer, after


def _sizes(dir: RunDir, folder: Path) -> dict[str, int]:
    """Of the journals or spools. Raises OSError where one of them is a link, or no file."""
    found: dict[str, int] = {}
    try:
        with open_folder_beneath(dir.root, folder) as handle, os.scandir(handle) as entries:
            for entry in entries:
                if not entry.name.endswith(".jsonl"):
                    continue
                if entry.is_symlink():
                    raise LinkRefused(str(folder / entry.name))
                if not entry.is_file():
                    raise NotAFile(str(folder / entry.name))
                found[f"{folder.name}/{entry.name}"] = entry.stat().st_size
    except FileNotFoundError:
        return found
    return found


def _folders_changed(dir: RunDir) -> FolderMark:
    return _changed(dir.journals), _changed(dir.spool)


def _changed(folder: Path) -> int:
    try:
        return os.lstat(folder).st_mtime_ns
    except FileNotFoundError:
        return 0
