"""Intake: what is done with messages as they come, before the broker may forget them. Milliseconds, whatever the training takes.

Many share one commit. Whatever is given back as done is stored, so it may be acknowledged; whatever raises may be given again.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from onward.clock import Clock
from onward.errors import InvalidInput, NotFound
from onward.gateway.messages import v2
from onward.gateway.messages.incoming import Incoming, Refusal
from onward.gateway.messages.protocols import load_protocol
from onward.gateway.messages.v2 import Control, ControlKind
from onward.model.requests.gateway_settings import GatewaySettings
from onward.model.requests.request import Outgoing, OutgoingKind, Request, RequestRecord
from onward.operations.requests.context import RecipeLookup
from onward.tracker.requests.store import Acceptance, Requests

log = logging.getLogger(__name__)

_MIB = 1 << 20
_MOST_WORDS = 4000  # of a sender's own mistakes, told back


class InboundQueue(StrEnum):
    """Which queue a message came by."""

    REQUESTS = "requests"
    CONTROL = "control"
    V1 = "v1"


@dataclass(frozen=True, kw_only=True)
class IntakeDecision:
    """A message that may be acknowledged, once what is here has been done."""

    aside: str = ""  # put it aside for this reason
    answer: Outgoing | None = None  # send this, if somebody waits for it
    news: bool = False  # there is something for whoever serves


class Intake:
    def __init__(self, *, requests: Requests, recipes: RecipeLookup, settings: GatewaySettings, clock: Clock) -> None:
        self._requests = requests
        self._recipes = recipes
        self._settings = settings
        self._clock = clock
        self._most = settings.message * _MIB
        self.hosts = allowed_hosts(settings)

    def take(self, given: Sequence[tuple[InboundQueue, Incoming]]) -> list[IntakeDecision]:
        """In order; one for each."""
        read = [self._read(door, incoming) for door, incoming in given]
        asked = [one for one in read if isinstance(one, Request)]
        if asked:
            taken = self._requests.accept_all(asked, quota=self._settings.quota or None, most=self._settings.queue or None)
            _tell(asked, taken)
        return [self._done(one, incoming) for one, (_, incoming) in zip(read, given, strict=True)]

    def _done(self, read: Request | Control | Refusal, incoming: Incoming) -> IntakeDecision:
        match read:
            case Request():
                return IntakeDecision(news=True)
            case Control():
                return self._controlled(read, incoming)
            case Refusal():
                return self._refused(read, incoming)

    def _read(self, door: InboundQueue, incoming: Incoming) -> Request | Control | Refusal:
        match door:
            case InboundQueue.CONTROL:
                return v2.control_of(incoming, most=self._most)
            case InboundQueue.REQUESTS:
                return self._checked(v2.request_of(incoming, most=self._most, now=self._clock.now()))
            case InboundQueue.V1:
                return self._checked(load_protocol(door).request_of(incoming, self._settings.v1, most=self._most, now=self._clock.now()))

    def _checked(self, read: Request | Refusal) -> Request | Refusal:
        """What its recipe says to it. A request that was accepted stays accepted even if its recipe has changed."""
        if isinstance(read, Refusal):
            return read
        try:
            recipe = self._recipes.get(read.recipe)
            recipe.fill(settings=read.settings, inputs=read.inputs, resources=read.resources, request=read.id, hosts=self.hosts)
        except (InvalidInput, NotFound) as error:
            if self._requests.find(read.id) is not None:
                return read
            return Refusal(reason=error.message, next=error.hint, request=read, aside=False)
        return read

    def _refused(self, refusal: Refusal, incoming: Incoming) -> IntakeDecision:
        reason = refusal.reason[:_MOST_WORDS]
        aside = reason if refusal.aside else ""
        if refusal.request is not None:
            self._requests.refuse(refusal.request, reason, next=refusal.next)
            log.info("request %s is refused: %s", refusal.request.id, _line(reason))
            return IntakeDecision(aside=aside, news=True)
        log.warning("a message that is not a request is put aside: %s", _line(reason))
        if incoming.reply_to:
            self._requests.outbox.post(self._error(incoming, refusal))
        return IntakeDecision(aside=aside, news=bool(incoming.reply_to))

    def _error(self, incoming: Incoming, refusal: Refusal) -> Outgoing:
        """Of the same message, delivered again, it is the same."""
        return Outgoing(
            id=f"error.{hashlib.sha256(f'{incoming.sha256} {incoming.correlation_id}'.encode(errors='replace')).hexdigest()[:32]}",
            request="",
            kind=OutgoingKind.ERROR,
            protocol=v2.PROTOCOL,
            reply_to=incoming.reply_to,
            correlation_id=incoming.correlation_id,
            payload={"reason": refusal.reason[:_MOST_WORDS], "next": refusal.next},
            made=self._clock.now(),
        )

    def _controlled(self, control: Control, incoming: Incoming) -> IntakeDecision:
        now = self._clock.now()
        record = self._requests.find(control.id)
        asked = control.kind is ControlKind.CANCEL and record is not None
        if asked:
            record = self._requests.end(control.id, by=control.by, at=now)
            log.info("%s asks to cancel request %s", control.id, control.by)
        answer = Outgoing(
            id=f"{control.id}.status.{secrets.token_hex(8)}",
            request=control.id,
            kind=OutgoingKind.STATUS,
            protocol=v2.PROTOCOL,
            reply_to=incoming.reply_to,
            correlation_id=incoming.correlation_id or control.id,
            payload=_status(record) if record else {"state": "unknown", "words": "there is no request with this id"},
            made=now,
        )
        return IntakeDecision(answer=answer if incoming.reply_to else None, news=asked)


def allowed_hosts(settings: GatewaySettings) -> tuple[str, ...]:
    """Those that inputs may come from: of the settings, and the site's Rodan."""
    rodan = urlsplit(settings.v1.rodan).netloc.lower() if settings.v1.rodan else ""
    return tuple(dict.fromkeys([*settings.hosts, *([rodan] if rodan else [])]))


def _status(record: RequestRecord) -> dict[str, object]:
    outcome = record.outcome
    return {
        "state": str(outcome.state if outcome else record.state),
        "words": "it is being cancelled" if record.cancel_asked and not outcome else record.words,
        "run": record.run if record.folder else None,
        "progress": record.progress,
        "outcome": {"state": str(outcome.state), "reason": outcome.reason, "next": outcome.next} if outcome else None,
    }


def _tell(asked: Sequence[Request], taken: Sequence[Acceptance]) -> None:
    for request, how in zip(asked, taken, strict=True):
        match how:
            case Acceptance.ACCEPTED:
                log.info("request %s of %s for %s is accepted", request.id, request.sender, request.recipe)
            case Acceptance.SAME:
                log.info("request %s arrived again", request.id)
            case Acceptance.OTHER:
                log.warning("a different message with the id of request %s is refused", request.id)
            case Acceptance.FULL:
                log.warning("request %s of %s is refused: too many are open", request.id, request.sender)


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
