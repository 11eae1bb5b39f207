"""Records pushed by a supervisor or an agent, where there is no shared storage. The same records by both ways are stored once."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc, Who
from onward.api.routes.ingest import pushed_pieces
from onward.api.routes.path_params import run_of
from onward.api.schemas.base import In, Text

router = APIRouter(tags=["records"])
router.include_router(pushed_pieces.router)


class RecordsIn(In):
    run: Annotated[Text, Field(min_length=1, max_length=64)]
    leg: int = Field(ge=1, le=1_000_000)
    writer: Annotated[Text, Field(min_length=1, max_length=250)] = Field(description="Who numbers them: train-17, supervisor.")
    records: list[dict[str, Any]] = Field(
        max_length=50_000,
        description='As in a spool: {"n": sequence, "t": unix seconds, "s": step, "m": {metric: value}} and others.',
    )


class RecordsResult(BaseModel):
    points: int = Field(description="New ones, committed.")
    repeated: int = Field(description="Records that were already stored.")
    refused: int = Field(description="Invalid records; `why` says what is wrong with the first.")
    why: str


@router.post("/api/v1/records", summary="Push records")
def push(svc: Svc, who: Who, asked: RecordsIn) -> RecordsResult:
    """Identified by run, leg, writer and sequence: a record that is sent twice is stored once. The answer comes when they are committed.

    A run's token may send records of its run, an agent's those of runs of its cluster."""
    run = run_of(svc, asked.run)
    who.must_write(run.run_id, cluster=run.cluster)
    taken = svc.tracker.ingest.records(asked.run, asked.leg, asked.writer, asked.records)
    return RecordsResult(points=taken.points, repeated=taken.repeated, refused=taken.refused, why=taken.why)
