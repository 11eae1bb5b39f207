"""How far a spool was read, and the next piece of it: never more than a few MB at a time, however long the file or its lines are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from onward.rundir.files.growing import lines_from
from onward.rundir.files.no_links import reading
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.legs import upsert

PIECE = 4 << 20  # bytes of a file, in one transaction
LONGEST_LINE = 32 << 20  # a longer one is no record, and is passed over
_HEAD = 256  # bytes by which a file is known again
_positions = schema.positions


@dataclass(frozen=True, kw_only=True)
class Position:
    offset: int = 0
    size: int = -1
    head: str = ""
    life: float | None = None


@dataclass(frozen=True, kw_only=True)
class SpoolPiece:
    """`lines`: whole ones. `used`: bytes that need not be read again, `skipped` of them of a line that is too long."""

    size: int
    head: str
    lines: bytes = b""
    used: int = 0
    skipped: int = 0
    more: bool = False  # there may be more to read at once


def read_piece(root: Path, path: Path, at: Position, *, piece: int = PIECE, longest: int = LONGEST_LINE) -> SpoolPiece | None:
    """What is new; None where the file is shorter than it was, or begins otherwise."""
    with reading(root, path) as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_HEAD)
        if at.head:
            length, digest = at.head.split(":")
            if size < at.offset or _digest(start[: int(length)]) != digest:
                return None
        head = f"{len(start)}:{_digest(start)}"
        whole, rest = lines_from(file, at.offset, piece=piece, longest=longest + 1)
        if whole or len(rest) <= longest:
            there = at.offset + len(whole) + len(rest)
            return SpoolPiece(size=size, head=head, lines=whole, used=len(whole), more=bool(whole) and there < size)
        used = len(rest)
        while rest := file.read(piece):  # the end of the line that is too long
            end = rest.find(b"\n") + 1
            used += end or len(rest)
            if end:
                return SpoolPiece(size=size, head=head, used=used, skipped=used, more=True)
        return SpoolPiece(size=size, head=head)  # not whole yet


def save_positions(batch: Batch, run: int, positions: Mapping[str, Position]) -> None:
    rows = [{"run": run, "file": n, "offset": p.offset, "size": p.size, "head": p.head, "life": p.life} for n, p in positions.items()]
    upsert(batch, _positions, rows, keys=("run", "file"), change=("offset", "size", "head", "life"))


def positions_of(connection: Connection, run: int) -> dict[str, Position]:
    """Of the journals and spools of a run, by its inner id."""
    rows = connection.execute(select(_positions).where(_positions.c.run == run))
    return {
        row.file: Position(offset=row.offset, size=row.size, head=row.head, life=row.life)
        for row in rows
        if row.file.startswith(("journal/", "spool/"))
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
