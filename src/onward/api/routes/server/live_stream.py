"""The live stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from onward.api.dependencies import Svc, Who
from onward.api.transport.event_stream import Events

router = APIRouter(prefix="/api/v1", tags=["live"])

_DESCRIPTION = """Server-sent events, as they happen: `run_status_changed` (with `status`), `run_changed`, `points_added`
(at most one per second and run). Each has an id; a client that reconnects with `Last-Event-ID` (or `cursor`) gets what it missed,
or `reset` if that is no longer available: then read everything again."""


@router.get(
    "/live",
    summary="Follow events",
    description=_DESCRIPTION,
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def follow(
    svc: Svc,
    who: Who,
    run: Annotated[list[str] | None, Query(description="Only of these runs.", max_length=200)] = None,
    event: Annotated[list[str] | None, Query(description="Only these events.", max_length=20)] = None,
    cursor: Annotated[str | None, Query(description="The id of the last event seen.", max_length=100)] = None,
    last_event_id: Annotated[str | None, Header(description="The same, as a browser sends it when it reconnects.", max_length=100)] = None,
) -> Events:
    heard = svc.live.listen(last_event_id or cursor, runs=frozenset(run or ()), events=frozenset(event or ()))
    return Events(heard, svc.streams, who)
