"""Logs for a viewer that holds only what it shows: whole lines from anywhere, and a search that runs here."""

from __future__ import annotations

from typing import Annotated, BinaryIO

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.files.logs import LegNumber, Stream
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.pushed import must_be_readable
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.rundir.logs.search import ERRORS, search_log
from onward.tracker.runs.artifact_files import ArtifactFiles

router = APIRouter(prefix="/api/v1/runs/{run_id}/logs/{leg}/{stream}", tags=["logs and checkpoints"])

_PIECE = 1 << 16
_MOST = 4 << 20


class LogMatch(BaseModel):
    offset: int = Field(description="The byte at which the text begins.")
    length: int
    line_offset: int = Field(description="The byte at which its line begins.")
    line: str = Field(description="The line, or the text around the match if the line is very long.")


class LogMatches(BaseModel):
    matches: list[LogMatch]
    next: int | None = Field(description="The `offset` that continues this search; null: everything was searched.")
    searched: int = Field(description="Bytes.")
    size: int


@router.get(
    "/lines",
    summary="Read whole lines of a log",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}, "description": "`x-offset`, `x-next-offset` and `x-size` say where in the log they are."}
    },
)
def lines(
    svc: Svc,
    run_id: RunId,
    leg: LegNumber,
    stream: Stream,
    offset: Annotated[int, Query(ge=-(1 << 53), le=1 << 53, description="Roughly where to begin; negative: from the end.")] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="At most this many bytes.")] = _PIECE,
) -> Response:
    """Lines that begin and end within these bytes; also the log's last line, even if it is incomplete. A longer line comes in parts."""
    file, size = _opened(svc, run_id, leg, stream)
    with file:
        start = max(size + offset, 0) if offset < 0 else offset
        data, start = _whole(file, start, limit, size)
    headers = {"x-offset": str(start), "x-next-offset": str(start + len(data)), "x-size": str(size)}
    return Response(data, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/search", summary="Search a log")
def found(
    svc: Svc,
    run_id: RunId,
    leg: LegNumber,
    stream: Stream,
    text: Annotated[str, Query(max_length=500, description="The exact text to search for.")] = "",
    errors: Annotated[bool, Query(description="Lines that look like an error instead: tracebacks, kills, full disks.")] = False,
    case: Annotated[bool, Query(description="Whether the search is case-sensitive.")] = False,
    offset: Annotated[int, Query(ge=-1, le=1 << 53, description="The first byte to search; -1: the end, for a backward search.")] = 0,
    back: Annotated[bool, Query(description="Search backwards, in lines that begin before `offset`, last one first.")] = False,
    limit: Annotated[int, Query(ge=1, le=1000, description="The most lines to return.")] = 1,
) -> LogMatches:
    """One match per line. A search reads a limited part of the log; if `next` is given, continue from there."""
    if not text and not errors:
        raise InvalidInput("text: nothing to search for", hint="give `text`, or `errors=true`")
    texts, case = (ERRORS, True) if errors else ((text.encode(errors="replace"),), case)
    file, size = _opened(svc, run_id, leg, stream)
    with file:
        seen = search_log(file, size, texts, start=size if offset < 0 else offset, limit=limit, case=case, back=back)
    return LogMatches(matches=[LogMatch(**vars(one)) for one in seen.matches], next=seen.next, searched=seen.searched, size=size)


def _opened(svc: Services, run_id: str, leg: int, stream: str) -> tuple[BinaryIO, int]:
    dir = must_be_readable(svc, run_of(svc, run_id))
    file, seen = ArtifactFiles(dir.logs, root=dir.root).open(
        dir.supervisor_log.name if stream == "supervisor" else dir.log(leg, stream).name
    )
    return file, seen.size


def _whole(file: BinaryIO, start: int, limit: int, size: int) -> tuple[bytes, int]:
    """The whole lines of a part, and where they begin."""
    file.seek(max(start - 1, 0))
    before = file.read(1) if start else b"\n"  # the log's beginning is a line's
    data = file.read(limit)
    skip = 0 if before == b"\n" else data.find(b"\n") + 1
    end = len(data) if start + len(data) >= size else data.rfind(b"\n") + 1
    return (data[skip:end], start + skip) if end > skip else (data, start)
