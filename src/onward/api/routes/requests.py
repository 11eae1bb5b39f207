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
ResultName = Annotated[str, Path(min_length=1, max_length=250, description="The result's name, as in the reply.")]


class RequestStateFilter(StrEnum):
    """Which requests: open ones, or those that ended in this state."""

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
        RequestStateFilter | None, Query(description="Only those in this state; `failed`: all that ended in another state than the others.")
    ] = None,
    text: Annotated[str, Query(max_length=250, description="Part of an id, a sender or a recipe; or a run's id.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="The most to return.")] = 100,
    before: Annotated[int | None, Query(ge=0, le=1 << 53, description="`next` of the previous page.")] = None,
) -> RequestList:
    """Newest first. Empty if no gateway ever ran."""
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
    """With its settings, its reply, and every message that was sent."""
    return _told(_store(svc, id), id)


@router.post("/{id}/cancel", summary="Cancel a request")
def cancel(svc: Svc, who: Who, id: RequestId) -> RequestDetails:
    """The gateway ends its run and notifies the sender. Repeating it changes nothing."""
    store = _store(svc, id)
    outcome = store.end(id, by=who.name or f"token {who.token}", at=svc.clock.now()).outcome
    if outcome:
        raise Conflict(f"request {id} is over: {outcome.reason}", hint="its reply is final")
    note(logging.INFO, "cancel", f"request {id} will be cancelled", token=who.token)
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
    expires: Annotated[int | None, Query(description="For a signed address: when it expires.")] = None,  # both were looked at by the gate
    signature: Annotated[str | None, Query(max_length=128, description="For a signed address, which needs no token.")] = None,
) -> StreamingResponse:
    """As an attachment. With a token, or with the address from the reply until that expires."""
    outcome = _store(svc, id).of(id).outcome
    found = next((one for one in outcome.results if one.name == name), None) if outcome else None
    if found is None:
        raise NotFound(f"request {id} has no result {name[:100]!r}", hint="its reply lists its results")
    at = File(found.path)
    if at.is_file() and at.stat().st_size != found.size:
        raise Conflict(f"the result {name} of request {id} has changed since the reply was sent", hint="see the run's folder for the files")
    root = next((root for root in svc.context.roots if at.is_relative_to(root)), at.parent)
    return send_file(ArtifactFiles(at.parent, root=root), at.name)


def _store(svc: Services, id: str) -> Requests:
    must_be_storable(id)
    store = svc.requests()
    if store is None:
        raise NotFound(f"no request {id[:100]!r}: no gateway has run here", hint="`onward gateway` listens to the queue")
    return store


def _told(store: Requests, id: str) -> RequestDetails:
    return request_details(store.of(id), store.outbox.of(id))


def _counts(held: Mapping[str, int]) -> dict[str, int]:
    """By standing, and of all."""
    each = {str(one): sum(held.get(word, 0) for word in one.words) for one in RequestStateFilter}
    return {"all": sum(each.values()), **each}
