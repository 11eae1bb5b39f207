"""Logs: read from the run's folder, as far as this server can see it, or from what was sent of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc, Who
from onward.api.routes.files.artifacts import send_file
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.pushed import must_be_readable, readable
from onward.api.transport.event_stream import Events
from onward.errors import NotFound
from onward.rundir.layout import RunDir, leg_of
from onward.tracker.runs.artifact_files import ArtifactFiles

router = APIRouter(prefix="/api/v1/runs/{run_id}", tags=["logs and checkpoints"])

_PIECE = 1 << 16  # bytes of one event: a line without an end comes in parts
_MOST = 4 << 20
_LOOK_EVERY = 0.5  # seconds, while following

Stream = Annotated[Literal["out", "err", "supervisor"], Path(description="Which log; `supervisor` is one for all legs.")]
LegNumber = Annotated[int, Path(ge=0, le=1_000_000, description="The leg; 0 for the supervisor's.")]


class LogOut(BaseModel):
    leg: int = Field(description="0: the supervisor's, for all legs.")
    stream: Literal["out", "err", "supervisor"]
    bytes: int
    modified: float


class LogList(BaseModel):
    logs: list[LogOut]


@router.get("/logs", summary="List a run's logs")
def listed(svc: Svc, run_id: RunId) -> LogList:
    """By leg: what the training printed (`out`, `err`), and the supervisor's log. Empty if the server cannot see its folder."""
    dir = readable(svc, run_of(svc, run_id))
    found = []
    for file in ArtifactFiles(dir.logs, root=dir.root).list() if dir else ():
        leg, stream = leg_of(file.path), file.path.rpartition(".")[2]
        if leg is not None and stream in ("out", "err"):
            found.append(LogOut(leg=leg, stream="out" if stream == "out" else "err", bytes=file.size, modified=file.modified))
        elif dir and file.path == dir.supervisor_log.name:
            found.append(LogOut(leg=0, stream="supervisor", bytes=file.size, modified=file.modified))
    return LogList(logs=sorted(found, key=lambda log: (log.leg, log.stream)))


@router.get(
    "/logs/{leg}/{stream}",
    summary="Read a part of a log",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}, "description": "`x-offset`, `x-next-offset` and `x-size` say where in the log this is."}
    },
)
def read(
    svc: Svc,
    run_id: RunId,
    leg: LegNumber,
    stream: Stream,
    offset: Annotated[int, Query(ge=-(1 << 53), le=1 << 53, description="The first byte; negative: from the end.")] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="At most this many bytes.")] = _PIECE,
) -> Response:
    """The bytes unchanged, in UTF-8 as far as the training wrote it. Viewers must neutralise escape sequences."""
    data, start, size = _part(must_be_readable(svc, run_of(svc, run_id)), leg, stream, offset, limit)
    headers = {"x-offset": str(start), "x-next-offset": str(start + len(data)), "x-size": str(size)}
    return Response(data, media_type="text/plain; charset=utf-8", headers=headers)


@router.get(
    "/logs/{leg}/{stream}/follow",
    summary="Follow a log",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def follow(
    svc: Svc,
    who: Who,
    run_id: RunId,
    leg: LegNumber,
    stream: Stream,
    offset: Annotated[int, Query(ge=-(1 << 53), le=1 << 53, description="Where to begin; negative: from the end.")] = -_PIECE,
    last_event_id: Annotated[
        str | None, Header(description="What a browser sends when it reconnects: where to continue.", max_length=100)
    ] = None,
) -> Events:
    """Server-sent events with `text`, as the log grows; an event's id is the offset after it, so a client that reconnects loses nothing."""
    dir = must_be_readable(svc, await asyncio.to_thread(run_of, svc, run_id))
    if last_event_id and last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 16:
        offset = int(last_event_id)

    async def lines() -> AsyncIterator[str]:
        at, quiet = offset, 0.0
        while not svc.stopping:
            try:
                data, start, _ = await asyncio.to_thread(_part, dir, leg, stream, at, _PIECE)
            except NotFound:
                data, start = b"", max(at, 0)
            if data:
                at, quiet = start + len(data), 0.0
                yield f"id: {at}\ndata: {json.dumps({'offset': start, 'text': data.decode(errors='replace')})}\n\n"
                if len(data) == _PIECE:
                    continue
            at = max(at, start)
            await asyncio.sleep(_LOOK_EVERY)
            quiet += _LOOK_EVERY
            if quiet >= 15:
                quiet = 0.0
                yield ": still here\n\n"

    return Events(lines(), svc.streams, who)


@router.get(
    "/logs/{leg}/{stream}/file",
    summary="Download a log",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def download(svc: Svc, run_id: RunId, leg: LegNumber, stream: Stream) -> StreamingResponse:
    """The whole log, as an attachment."""
    dir = must_be_readable(svc, run_of(svc, run_id))
    return send_file(ArtifactFiles(dir.logs, root=dir.root), _name(dir, leg, stream))


def _part(dir: RunDir, leg: int, stream: str, offset: int, limit: int) -> tuple[bytes, int, int]:
    file, seen = ArtifactFiles(dir.logs, root=dir.root).open(_name(dir, leg, stream))
    with file:
        start = max(seen.size + offset, 0) if offset < 0 else offset
        file.seek(start)
        return file.read(limit), start, seen.size


def _name(dir: RunDir, leg: int, stream: str) -> str:
    return dir.supervisor_log.name if stream == "supervisor" else dir.log(leg, stream).name
