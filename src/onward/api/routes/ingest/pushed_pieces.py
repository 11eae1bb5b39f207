"""Runs whose folders this server cannot see: announced at submit, their files sent by their jobs, a piece at a time."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, BeforeValidator, Field

from onward.api.dependencies import Svc, Who
from onward.api.routes.path_params import RunId, must_be_storable, run_of
from onward.api.routes.server.tokens import NewToken, TokenOut
from onward.api.run_folders.pushed import PushedPiece, take_piece
from onward.api.schemas.base import shallow
from onward.errors import InvalidInput
from onward.rundir.packed_lines import KIND
from onward.tracker.access.tokens import Scope

router = APIRouter(prefix="/api/v1/runs", tags=["records"])
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_PACKED = {"requestBody": {"content": {KIND: _BYTES}}}
_PIECE = {"requestBody": {"content": {"application/x-ndjson": _BYTES, "application/octet-stream": _BYTES}}}


_Spec = Annotated[dict[str, Any], Body(description="params/spec.json unchanged."), BeforeValidator(shallow)]


class Announced(BaseModel):
    run_id: str


class NextOffset(BaseModel):
    next: int = Field(description="The byte to continue from: everything before it is committed.")
    packed: bool = Field(default=True, description="Lines of spools may be sent packed, to `packed-pieces`.")
    missing: bool = Field(default=False, description="Nothing was stored: send the same packed lines again, with all of their skeletons.")


@router.put("/{run_id}/spec", summary="Announce a run that jobs will send records of")
def announce(
    svc: Svc,
    who: Who,
    run_id: RunId,
    spec: _Spec,
) -> Announced:
    """Repeating it changes nothing."""
    who.must_write(run_id)
    must_be_storable(run_id)
    if spec.get("id") != run_id:
        raise InvalidInput(f"this is the spec of another run than {run_id[:40]!r}")
    return Announced(run_id=svc.tracker.push.announce(spec))


@router.post("/{run_id}/tokens", summary="Create a run's own token", status_code=201)
def token(svc: Svc, who: Who, run_id: RunId) -> NewToken:
    """For its jobs: it may append to this run and read it, and nothing else. It is valid until the run ends.

    Only this answer contains the secret."""
    run = run_of(svc, run_id)
    who.must_write(run.run_id)
    now = svc.clock.now()
    made, secret = svc.tokens.create(Scope.RUN, name=f"{who.name}: jobs of {run.name}"[:250], run=run.run_id, now=now)
    return NewToken(token=TokenOut.of(made, now), secret=secret.text)


@router.post("/{run_id}/pieces", summary="Send a piece of a file of a run's folder", openapi_extra=_PIECE)
async def piece(
    svc: Svc,
    who: Who,
    run_id: RunId,
    request: Request,
    file: Annotated[
        str,
        Query(
            description="As in the folder: journal/leg-0001.jsonl, spool/…, logs/leg-0001.out, results/tensorboard/…, results/artifacts/…",
            max_length=2000,
        ),
    ],
    offset: Annotated[int, Query(description="Where in the file it begins.", ge=0, le=1 << 53)],
    size: Annotated[int | None, Query(description="For an artifact: its full size in bytes.", ge=0, le=1 << 53)] = None,
    modified: Annotated[
        int | None,
        Query(
            description="For an artifact: when it was changed, in nanoseconds; a different time means different content.",
            ge=0,
            le=(1 << 63) - 1,
        ),
    ] = None,
) -> NextOffset:
    """Bytes that are already stored are ignored, so a piece may be sent twice, or the folder be read as well. Of journals and spools, whole
    lines are stored; an artifact appears when all of it is stored."""
    who.must_write(run_id)
    must_be_storable(run_id)
    taken = PushedPiece(file=file, offset=offset, data=await request.body(), size=size, modified=modified)
    return NextOffset(next=await asyncio.to_thread(take_piece, svc, run_id, taken))


@router.post("/{run_id}/packed-pieces", summary="Send packed lines of a spool", openapi_extra=_PACKED)
async def packed_piece(
    svc: Svc,
    who: Who,
    run_id: RunId,
    request: Request,
    file: Annotated[str, Query(description="As in the folder: spool/leg-0001.train-1.jsonl", max_length=2000)],
    offset: Annotated[int, Query(description="Where in the file the lines begin.", ge=0, le=1 << 53)],
) -> NextOffset:
    """The same as `pieces` of whole lines, which are packed as `onward.rundir.packed_lines` says."""
    who.must_write(run_id)
    must_be_storable(run_id)
    taken = await asyncio.to_thread(svc.tracker.push.packed_piece, run_id, file, offset, await request.body())
    return NextOffset(next=offset, missing=True) if taken is None else NextOffset(next=taken)
