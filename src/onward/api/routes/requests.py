"""Requests: what other applications asked for through the gateway, each with its run and its one answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from onward.api.dependencies import Svc, Who
from onward.api.routes.files.artifacts import send_file
from onward.api.routes.path_params import must_be_storable
from onward.api.schemas.requests import RequestDetails, RequestList, request_details, request_row
from onward.api.server_log import note
from onward.api.services import Services
from onward.errors import Conflict, NotFound
from onward.model.requests.outcome import OutcomeState
from onward.model.requests.request import MOST_ID, OPEN_STATES
from onward.rundir.files.artifacts import ArtifactFiles

if TYPE_CHECKING:
    from onward.tracker.requests.store import Requests

router = APIRouter(prefix="/api/v1/requests", tags=["requests"])

RequestId = Annotated[str, Path(min_length=1, max_length=MOST_ID, description="The request's id.")]
ResultName = Annotated[str, Path(min_length=1, max_length=250, description="The result's name, as the reply has it.")]


class RequestStateFilter(StrEnum):
    """Which requests: those that are open, or those that ended so."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"

    @property
    def words(self) -> frozenset[str]:
        match self:
            case RequestStateFilter.OPEN:
                return frozenset(OPEN_STATES)
            case RequestStateFilter.FAILED:
                return frozenset(OutcomeState) - {RequestStateFilter.DONE, RequestStateFilter.CANCELLED, RequestStateFilter.REFUSED}
            case RequestStateFilter.DONE | RequestStateFilter.CANCELLED | RequestStateFilter.REFUSED:
                return frozenset({self})


@router.get("", summary="List requests")
def listed(
    svc: Svc,
    state: Annotated[
        RequestStateFilter | None, Query(description="Only those that stand so; `failed`: ended otherwise than the others.")
    ] = None,
    text: Annotated[str, Query(max_length=250, description="Part of an id, a sender or a recipe; or a run's id.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 100,
    before: Annotated[int | None, Query(ge=0, le=1 << 53, description="`next` of the page before.")] = None,
) -> RequestList:
    """Newest first. Empty where no gateway ever ran."""
    must_be_storable(text)
    store = svc.requests()
    if store is None:
        return RequestList(requests=[], next=None, counts=_counts({}))
    found = store.list(states=state.words if state else (), text=text, limit=limit, before=before)
    replies = store.outbox.replies([one.id for one in found])
    return RequestList(
        requests=[request_row(one, replies.get(one.id)) for one in found],
        next=found[-1].number if len(found) == limit else None,
        counts=_counts(store.counts()),
    )


@router.get("/{id}", summary="Show a request")
def shown(svc: Svc, id: RequestId) -> RequestDetails:
    """With what it asked for, its answer, and every message that went out."""
    return _told(_store(svc, id), id)


@router.post("/{id}/cancel", summary="Cancel a request")
def cancel(svc: Svc, who: Who, id: RequestId) -> RequestDetails:
    """Its run is ended, and its sender is told; the gateway sees to it. Asked again, it changes nothing."""
    store = _store(svc, id)
    outcome = store.end(id, by=who.name or f"token {who.token}", at=svc.clock.now()).outcome
    if outcome:
        raise Conflict(f"request {id} is over: {outcome.reason}", hint="its answer is written, and stays")
    note(logging.INFO, "cancel", f"request {id} is to be cancelled", token=who.token)
    return _told(store, id)


@router.get(
    "/{id}/results/{name:path}",
    summary="Download a result",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def result(
    svc: Svc,
    id: RequestId,
    name: ResultName,
    expires: Annotated[int | None, Query(description="Of a signed address: when it closes.")] = None,  # both were looked at by the gate
    signature: Annotated[str | None, Query(max_length=128, description="Of a signed address, which needs no token.")] = None,
) -> StreamingResponse:
    """As an attachment. With a token, or by the address that a reply has, until that closes."""
    outcome = _store(svc, id).of(id).outcome
    found = next((one for one in outcome.results if one.name == name), None) if outcome else None
    if found is None:
        raise NotFound(f"request {id} has no result {name[:100]!r}", hint="its answer lists those it has")
    at = File(found.path)
    if at.is_file() and at.stat().st_size != found.size:
        raise Conflict(f"the result {name} of request {id} was changed since it was answered", hint="its run's folder has what there is")
    root = next((root for root in svc.desk.roots if at.is_relative_to(root)), at.parent)
    return send_file(ArtifactFiles(at.parent, root=root), at.name)


def _store(svc: Services, id: str) -> Requests:
    must_be_storable(id)
    store = svc.requests()
    if store is None:
        raise NotFound(f"there is no request {id[:100]!r}, nor any: no gateway has run here", hint="`onward gateway` listens to the queue")
    return store


def _told(store: Requests, id: str) -> RequestDetails:
    return request_details(store.of(id), store.outbox.of(id))


def _counts(held: Mapping[str, int]) -> dict[str, int]:
    """By standing, and of all."""
    each = {str(one): sum(held.get(word, 0) for word in one.words) for one in RequestStateFilter}
    return {"all": sum(each.values()), **each}
