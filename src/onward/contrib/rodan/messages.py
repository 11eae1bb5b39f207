"""The first protocol, as its applications speak it: `{"inputs", "settings"}` in, `{NAME: base64}` or `{"error"}` out. Pure.

It has no recipe, so all ask for the same; no id, so the correlation id is it; and no host in an input's address, so it is the site's Rodan.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from onward.errors import InvalidInput
from onward.gateway.messages.incoming import Incoming, Refusal, read_object
from onward.gateway.messages.message_body import Base64File, MessageBody
from onward.gateway.messages.packed_results import PackedResult
from onward.model.requests.gateway_settings import V1Settings
from onward.model.requests.outcome import OutcomeState
from onward.model.requests.request import Outgoing, OutgoingKind, Request, RequestInput

PROTOCOL = "v1"
_PLAIN = re.compile(r"[A-Za-z0-9._:-]{1,120}")
_PATH = re.compile(r"/(?!/)[^\x00-\x1f\x7f-\x9f\\]*")
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AS_IT_IS = "/%?&=:@!$'()*+,;~"  # in a path that may be escaped already; a '#' is part of a file's name
_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f]+")
_NEXT = 'send {"inputs": {NAME: "/uploads/…"}, "settings": {NAME: value}}'


def request_id(incoming: Incoming) -> str:
    """The same for the same message, however often the broker delivers it."""
    own = incoming.correlation_id
    if not own:
        return f"v1-{hashlib.sha256(incoming.body + b'|' + (incoming.reply_to or '').encode()).hexdigest()[:32]}"
    return f"v1-{own}" if _PLAIN.fullmatch(own) else f"v1-{hashlib.sha256(own.encode(errors='replace')).hexdigest()[:32]}"


def request_of(incoming: Incoming, settings: V1Settings, *, most: int, now: float) -> Request | Refusal:
    held = Request(
        id=request_id(incoming),
        sender=(incoming.user_id or f"{PROTOCOL}/{incoming.reply_to or settings.results}")[:100],
        protocol=PROTOCOL,
        recipe=settings.recipe,
        reply_to=_reply_to(incoming, settings),
        correlation_id=incoming.correlation_id,
        body_sha256=incoming.sha256,
        received=now,
    )
    try:
        body = read_object(incoming, most=most)
        inputs, chosen = _tables(body)
        addresses = tuple(_inputs(inputs, settings.rodan))
        if held.reply_to is None:
            raise InvalidInput(
                f"the message has no correlation id: on the shared queue {settings.results} nobody could tell whose the answer is",
                hint="set correlation_id, or a reply_to of your own",
            )
    except InvalidInput as error:
        return Refusal(reason=error.message, next=error.hint, request=held)
    return Request(**{**vars(held), "inputs": addresses, "settings": {name: value for name, value in chosen.items() if name != "token"}})


def _reply_to(incoming: Incoming, settings: V1Settings) -> str | None:
    """On the queue that all share nobody could tell whose an answer without a correlation id is, and all would hand it round for ever."""
    named = incoming.reply_to or settings.results
    return None if named == settings.results and not incoming.correlation_id else named


def body_of(message: Outgoing, parcels: Mapping[str, PackedResult] | None = None) -> MessageBody | None:
    """As it goes over the wire; None: this protocol has no such message."""
    match message.kind:
        case OutgoingKind.PROGRESS | OutgoingKind.STATUS:
            return None
        case OutgoingKind.ERROR:
            return _error(message.payload)
        case OutgoingKind.REPLY:
            if message.payload["state"] != OutcomeState.DONE or parcels is None:
                return _error(message.payload)
            left = [f"{name} cannot be sent: {one.trouble}" for name, one in parcels.items() if one.inside is None]
            if left:
                return _error({"reason": f"the training is done, but {'; '.join(left)}"})
            return MessageBody((b"{", *_results(parcels), b"}"))


def _tables(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    for key in ("inputs", "settings"):
        if not isinstance(body.get(key), dict):
            raise InvalidInput(f"the message has no {key}", hint=_NEXT)
    odd = [str(name)[:60] for name, value in body["settings"].items() if not isinstance(value, str | int | float | bool | None)]
    if odd:
        raise InvalidInput(f"the setting {odd[0]!r} is neither text nor a number", hint=_NEXT)
    return body["inputs"], body["settings"]


def _inputs(given: Mapping[str, Any], rodan: str | None) -> Iterator[RequestInput]:
    for name, value in given.items():
        if isinstance(value, str) and _ADDRESS.fullmatch(value):
            yield RequestInput(name=name, url=value)
        elif not (isinstance(value, str) and _PATH.fullmatch(value)):
            raise InvalidInput(f"the input {name[:60]!r} is not an address, expected a path such as /uploads/page.png", hint=_NEXT)
        elif rodan is None:
            raise InvalidInput(
                f"this gateway cannot fetch {value[:100]}: it has no address for paths",
                hint="have its administrator set gateway.v1.rodan, or send full URLs",
            )
        else:
            parts = urlsplit(rodan)
            yield RequestInput(name=name, url=f"{parts.scheme}://{parts.netloc}{_escaped(value)}")


def _escaped(path: str) -> str:
    """Its applications write file names as they are: with blanks, and letters of any alphabet."""
    return quote(_NO_ESCAPE.sub("%25", path), safe=_AS_IT_IS)


def _results(parcels: Mapping[str, PackedResult]) -> Iterator[bytes | Base64File]:
    for number, (name, one) in enumerate(parcels.items()):
        assert one.inside is not None
        yield from (b", " if number else b"", json.dumps(name).encode(), b': "', Base64File(result=one.inside, lines=True), b'"')


def _error(payload: Mapping[str, Any]) -> MessageBody:
    """One text for all that there is to say."""
    words = [str(payload[key]) for key in ("reason", "next") if payload.get(key)]
    tail = str(payload.get("log_tail") or "").strip()
    return MessageBody((json.dumps({"error": "\n".join([". ".join(words), *([tail] if tail else [])])}).encode(),))
