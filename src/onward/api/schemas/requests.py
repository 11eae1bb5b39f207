"""Requests of the gateway as the page and other clients read them, and how a record of the store becomes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, Field

from onward.api.schemas.base import Number, finite
from onward.model.requests.outcome import OutcomeFile
from onward.model.requests.request import Outgoing, OutgoingKind, RequestRecord, RequestState


class ReplyOut(BaseModel):
    """The reply's delivery."""

    made: float
    tries: int
    sent: float | None = Field(description="When the broker accepted it; none: it waits.")
    error: str = Field(description="Why the last try failed.")


class RequestRow(BaseModel):
    id: str
    sender: str
    protocol: str = Field(description="v1 or v2.")
    recipe: str
    state: RequestState
    outcome: str | None = Field(description="How it ended: done, failed, out_of_memory, …; none: it is not over.")
    reason: str = Field(description="Why it ended this way; for an open one, why it waits.")
    run_id: str | None
    received: float
    submitted: float | None
    settled: float | None
    deadline: float | None
    priority: int
    cancel_asked: float | None
    reply: ReplyOut | None = Field(description="None: it is not over, or its sender wants no reply.")


class InputOut(BaseModel):
    name: str
    url: str = Field(description="Without its query, which may contain secrets.")
    sha256: str | None
    size: int | None


class ResultOut(BaseModel):
    name: str
    size: int
    sha256: str
    media_type: str


class MessageOut(BaseModel):
    id: str
    kind: OutgoingKind
    made: float
    tries: int
    sent: float | None
    error: str


class RequestDetails(RequestRow):
    inputs: list[InputOut]
    settings: dict[str, Any]
    resources: dict[str, Any]
    reply_to: str | None
    correlation_id: str | None
    fraction: float | None = Field(description="The progress of its run, if known: 0 to 1.")
    next: str = Field(description="What to do about it.")
    log_tail: str
    metrics: dict[str, Number]
    results: list[ResultOut]
    messages: list[MessageOut] = Field(description="Newest first.")


class RequestList(BaseModel):
    requests: list[RequestRow] = Field(description="Newest first.")
    next: int | None = Field(description="`before` of the next page; none: these are the oldest.")
    counts: dict[str, int] = Field(description="How many there are in each state that `state` accepts, and in `all`.")


def request_row(record: RequestRecord, reply: Outgoing | None) -> RequestRow:
    return RequestRow(**_row(record, reply))


def request_details(record: RequestRecord, messages: Sequence[Outgoing]) -> RequestDetails:
    request, outcome = record.request, record.outcome
    return RequestDetails(
        **_row(record, next((one for one in messages if one.terminal), None)),
        inputs=[InputOut(name=one.name, url=without_secrets(one.url), sha256=one.sha256, size=one.size) for one in request.inputs],
        settings=finite(request.settings),
        resources=finite(request.resources),
        reply_to=request.reply_to,
        correlation_id=request.correlation_id,
        fraction=_fraction(record),
        next=outcome.next if outcome else "",
        log_tail=outcome.log_tail if outcome else "",
        metrics=finite(outcome.metrics if outcome else (record.progress or {}).get("metrics") or {}),
        results=[ResultOut(name=one.name, size=one.size, sha256=one.sha256, media_type=one.media_type) for one in _results(record)],
        messages=[
            MessageOut(id=one.id, kind=one.kind, made=one.made, tries=one.tries, sent=one.sent, error=one.error)
            for one in sorted(messages, key=lambda one: -one.made)
        ],
    )


def _row(record: RequestRecord, reply: Outgoing | None) -> dict[str, Any]:
    request, outcome = record.request, record.outcome
    return {
        "id": record.id,
        "sender": request.sender,
        "protocol": request.protocol,
        "recipe": request.recipe,
        "state": record.state,
        "outcome": outcome.state if outcome else None,
        "reason": outcome.reason if outcome else record.words,
        "run_id": record.run if record.folder else None,
        "received": request.received,
        "submitted": record.submitted,
        "settled": record.settled,
        "deadline": request.deadline,
        "priority": request.priority,
        "cancel_asked": record.cancel_asked,
        "reply": ReplyOut(made=reply.made, tries=reply.tries, sent=reply.sent, error=reply.error) if reply else None,
    }


def _fraction(record: RequestRecord) -> float | None:
    percent = (record.progress or {}).get("percent")
    return percent / 100 if isinstance(percent, int | float) else None


def _results(record: RequestRecord) -> tuple[OutcomeFile, ...]:
    return record.outcome.results if record.outcome else ()


def without_secrets(url: str) -> str:
    """An address to show: without its secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "…" if parts.query else "", ""))
