"""A run's timeline: what it waited for, its legs, checkpoints, ends and requests, each with words and the log that tells more."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.history import history_of
from onward.api.schemas.base import finite, json_response
from onward.model.analysis.timeline import MarkKind, SegmentKind, timeline
from onward.tracker.series.pace import furthest

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

_MOMENTS = 4000  # by which stalls are told


class LogLink(BaseModel):
    leg: int = Field(description="0 for the supervisor's.")
    stream: Literal["out", "err", "supervisor"]


class SegmentOut(BaseModel):
    kind: SegmentKind
    leg: int
    start: float
    end: float | None = Field(description="Null: it has not ended.")
    words: str
    job: str | None
    state: str = Field(description="For a leg: how it ended, or running.")
    log: LogLink | None


class MarkOut(BaseModel):
    kind: MarkKind
    leg: int
    at: float
    words: str
    step: int | None
    log: LogLink | None


class TimelineOut(BaseModel):
    start: float
    end: float = Field(description="For a run that is not over: now.")
    segments: list[SegmentOut]
    marks: list[MarkOut]
    checkpoints: int = Field(
        description="How many there were. Of more than a thousand, only some are drawn, always including the last of each leg."
    )


@router.get("/{run_id}/timeline", summary="Draw a run's timeline", response_model=TimelineOut)
def shown(svc: Svc, run_id: RunId) -> Response:
    """In chronological order, across all legs."""
    history = history_of(svc, run_of(svc, run_id))
    with svc.tracker.reading_points() as connection:
        key = furthest(connection, history.info)
    charts = svc.tracker.series.charts([history.info.run_id], [key], buckets=_MOMENTS) if key else []
    logged = sorted(charts[0].times) if charts else []
    return json_response(finite(asdict(timeline(history.run, history.events, now=svc.clock.now(), logged=logged))))
