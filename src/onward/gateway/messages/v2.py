"""The second protocol: a request by its own id, a recipe by its name; one reply, and progress, status and cancel. Pure.

    in   onward.requests  {"id", "recipe", "inputs": {NAME: {"url", "sha256"?, "size"?}}, "settings"?, "resources"?,
                           "deadline"?, "priority"?, "sender"?}
         onward.control   {"kind": "cancel" | "status", "id"}
    out  to reply_to, with the request's correlation_id and a message_id that stays the same if it is sent twice:
         {"kind": "reply" | "progress" | "status" | "error", "id", "at", "state", …}

Whoever knows a request's id may cancel it and ask for it: it should not be a number that others can guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from onward.errors import InvalidInput
from onward.gateway.messages.incoming import Incoming, Refusal, read_object
from onward.gateway.messages.message_body import Base64File, MessageBody
from onward.gateway.messages.packed_results import PackedResult
from onward.inputs.recipes.request_body import REQUEST_ID, read_request
from onward.model.requests.request import Outgoing, Request, RequestInput, sender_name

REQUESTS, CONTROL = "onward.requests", "onward.control"
PROTOCOL = "v2"
_ID = re.compile(REQUEST_ID)


class ControlKind(StrEnum):
    CANCEL = "cancel"
    STATUS = "status"


@dataclass(frozen=True, kw_only=True)
class Control:
    kind: ControlKind
    id: str
    by: str


def request_of(incoming: Incoming, *, most: int, now: float) -> Request | Refusal:
    try:
        body = read_object(incoming, most=most)
    except InvalidInput as error:
        return Refusal(reason=error.message, next=error.hint)
    own = _text(body.get("id"))
    if not _ID.fullmatch(own):
        return Refusal(reason="the message has no id of 1 to 128 letters, digits, '.', '_', ':' or '-'", next="give each its own")
    held = Request(
        id=own,
        sender=sender_name(user=incoming.user_id, said=_text(body.get("sender"))),
        protocol=PROTOCOL,
        recipe=_text(body.get("recipe"))[:64],
        reply_to=incoming.reply_to,
        correlation_id=incoming.correlation_id or own,
        body_sha256=incoming.sha256,
        received=now,
    )
    try:
        read = read_request(body)
    except InvalidInput as error:
        return Refusal(reason=error.message, next=error.hint, request=held)
    inputs = tuple(RequestInput(name=name, url=one.url, sha256=one.sha256, size=one.size) for name, one in read.inputs.items())
    return _filled(held, inputs=inputs, settings=read.settings, resources=read.resources, deadline=read.deadline, priority=read.priority)


def control_of(incoming: Incoming, *, most: int) -> Control | Refusal:
    try:
        body = read_object(incoming, most=most)
    except InvalidInput as error:
        return Refusal(reason=error.message, next=error.hint)
    kind, own = body.get("kind"), _text(body.get("id"))
    if kind not in tuple(ControlKind) or not _ID.fullmatch(own) or set(body) - {"kind", "id", "sender"}:
        return Refusal(reason='a message to the control queue must be {"kind": "cancel" or "status", "id": ID}')
    return Control(kind=ControlKind(kind), id=own, by=sender_name(user=incoming.user_id, said=_text(body.get("sender"))))


def body_of(message: Outgoing, parcels: Mapping[str, PackedResult] | None = None) -> MessageBody:
    """As it goes over the wire. `parcels`: its results, packed."""
    fields = {key: value for key, value in message.payload.items() if key != "results" and value is not None}
    head = json.dumps({"kind": str(message.kind), "id": message.request, "at": message.made, **fields}).encode()
    if parcels is None:
        return MessageBody((head,))
    parts: list[bytes | Base64File] = [head[:-1], b', "results": {']
    for number, (name, one) in enumerate(parcels.items()):
        parts += [b", " if number else b"", json.dumps(name).encode(), b": ", *_result(one)]
    return MessageBody((*parts, b"}}"))


def _result(parcel: PackedResult) -> Iterator[bytes | Base64File]:
    found: dict[str, Any] = {"file": parcel.file, "size": parcel.size, "sha256": parcel.sha256, "media_type": parcel.media_type}
    if parcel.url is not None:
        found |= {"url": parcel.url, "expires": parcel.expires}
    if parcel.trouble:
        found |= {"reason": parcel.trouble, "next": parcel.next}
    text = json.dumps(found).encode()
    if parcel.inside is None:
        yield text
    else:
        yield from (text[:-1], b', "data": "', Base64File(result=parcel.inside), b'"}')


def _filled(request: Request, **values: Any) -> Request:
    return Request(**{**vars(request), **values})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
