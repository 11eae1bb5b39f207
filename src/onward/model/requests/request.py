"""Request: a message that asks for a training, from its acceptance to the one answer it gets. Pure.

    accepted ──▶ submitted ──▶ running ──▶ settled        has, or had, a run (or ended before it got one)
    refused                                               never had one

States only go forward. `outcome` holds how it ended; `Outgoing` is what goes back to the sender.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from onward.model.requests.outcome import Outcome

MOST_ID = 200  # characters


class RequestState(StrEnum):
    ACCEPTED = "accepted"  # stored; its run is still to be submitted
    SUBMITTED = "submitted"  # its run is in the scheduler's hands
    RUNNING = "running"  # a leg of its run has begun
    SETTLED = "settled"  # its answer is written
    REFUSED = "refused"  # its answer is written, and there was never a run

    @property
    def over(self) -> bool:
        return self in (RequestState.SETTLED, RequestState.REFUSED)


OPEN_STATES = tuple(state for state in RequestState if not state.over)


class RequestEnding(StrEnum):
    """Why we end a run before it ends by itself: written down before it is done, so that a crash cannot change the answer."""

    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, kw_only=True)
class RequestInput:
    """A file that the training needs, by the name its recipe knows it under."""

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None  # bytes


@dataclass(frozen=True, kw_only=True)
class Request:
    id: str
    sender: str
    protocol: str  # v1 | v2
    recipe: str
    inputs: tuple[RequestInput, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    deadline: float | None = None  # unix seconds
    priority: int = 0  # the higher goes first
    reply_to: str | None = None
    correlation_id: str | None = None
    body_sha256: str  # of the message as it came: the same id with another body is another request
    received: float


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """A request, and all that is known of it."""

    number: int  # in the order of acceptance
    request: Request
    state: RequestState
    run: str | None = None  # the id of its run, chosen before the run is made
    folder: str | None = None  # once it is made
    ending: RequestEnding | None = None  # why we are ending its run
    ending_by: str = ""
    ending_at: float | None = None
    tries: int = 0  # to submit it, that came to nothing
    due: float = 0.0  # not to be submitted before
    words: str = ""  # why it waits, where something keeps it from being submitted
    progress: Mapping[str, Any] | None = None  # what was last told of it
    progress_at: float | None = None
    submitted: float | None = None
    settled: float | None = None  # also of a refused one
    outcome: Outcome | None = None

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def accepted(self) -> float:
        return self.request.received

    @property
    def cancel_asked(self) -> float | None:
        return self.ending_at if self.ending is RequestEnding.CANCELLED else None


class OutgoingKind(StrEnum):
    REPLY = "reply"  # the one answer
    PROGRESS = "progress"
    STATUS = "status"  # to a question
    ERROR = "error"  # about a message that is no request of ours, or one whose id is taken


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """What goes back, as it lies in the outbox. Its id stays the same however often it is sent.

    `payload`, by kind:
      reply     what `outcome.to_json` says, and `run`
      progress  state (of its run: submitted, running, waiting), words, run, leg, expected_start, step, total, percent, metrics
      status    state, words, run, progress, outcome (None: not over); or {"state": "unknown", "words": …}
      error     reason, next
    """

    id: str
    request: str
    kind: OutgoingKind
    protocol: str
    reply_to: str | None
    correlation_id: str | None
    payload: Mapping[str, Any]
    made: float
    due: float | None = None  # when it is tried next; None: it was sent, or there is nobody to send it to
    tries: int = 0
    sent: float | None = None
    error: str = ""  # why the last try failed

    @property
    def terminal(self) -> bool:
        return self.kind is OutgoingKind.REPLY


_NOBODY = "anonymous"


def sender_name(*, user: str | None, said: str = "") -> str:
    """`user`: whom the broker vouches for. What a message says of itself is a label, and no account."""
    return (user or (f"{_NOBODY}/{said}" if said else _NOBODY))[:100]


def account_of(sender: str) -> str:
    """Whose quota a sender's requests count towards: all that nobody vouches for share one."""
    return _NOBODY if sender.startswith(f"{_NOBODY}/") else sender


def deadline_of(*, received: float, own: float | None, limit: float | None) -> float | None:
    """When a request must have its answer: its own deadline, or so many seconds from when it came; whichever is first."""
    return min([end for end in (own, None if limit is None else received + limit) if end is not None], default=None)


def make_reply(request: Request, outcome: Outcome, *, run: str | None, at: float) -> Outgoing:
    """The one answer. There is one id for it, so there is one of it."""
    return make_outgoing(request, OutgoingKind.REPLY, {**outcome.to_json(), "run": run}, name="reply", at=at)


def make_outgoing(request: Request, kind: OutgoingKind, payload: Mapping[str, Any], *, name: str, at: float) -> Outgoing:
    return Outgoing(
        id=f"{request.id}.{name}",
        request=request.id,
        kind=kind,
        protocol=request.protocol,
        reply_to=request.reply_to,
        correlation_id=request.correlation_id,
        payload=payload,
        made=at,
    )


def request_to_json(request: Request) -> dict[str, Any]:
    """What of it has no column of its own."""
    return {
        "inputs": [vars(one) for one in request.inputs],
        "settings": dict(request.settings),
        "resources": dict(request.resources),
    }


def request_from_json(content: Mapping[str, Any], **columns: Any) -> Request:
    return Request(
        **columns,
        inputs=tuple(RequestInput(**one) for one in content["inputs"]),
        settings=content["settings"],
        resources=content["resources"],
    )
