"""What came from the broker, and what cannot be served of it. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from onward.errors import InvalidInput
from onward.model.requests.request import Request
from onward.model.storable_text import is_plain

_DEEPEST = 20  # a request's own shape has three levels


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A message: its body, and those of its properties that mean something to us."""

    body: bytes
    reply_to: str | None = None
    correlation_id: str | None = None
    message_id: str | None = None
    user_id: str | None = None  # the broker lets nobody write another's
    content_encoding: str | None = None
    unreadable: str = ""  # why there are no properties

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a message is not served. It is answered if it has a reply queue, and put aside if it is not a request."""

    reason: str
    next: str = ""
    request: Request | None = None  # where enough could be read to know whose it is
    aside: bool = True


def read_object(incoming: Incoming, *, most: int) -> dict[str, Any]:
    """The JSON object that it holds; InvalidInput where it holds none. `most`: bytes."""
    if incoming.unreadable:
        raise InvalidInput(
            f"the message's properties cannot be read: {incoming.unreadable}", hint="send them as AMQP 0-9-1 defines them, in UTF-8"
        )
    if len(incoming.body) > most:
        raise InvalidInput(f"the message has {len(incoming.body):,} bytes, expected at most {most:,}", hint="send large files as URLs")
    if incoming.content_encoding not in (None, "", "utf-8", "identity"):
        raise InvalidInput(f"the message is encoded as {incoming.content_encoding[:40]!a}", hint="send plain JSON")
    try:
        found = json.loads(incoming.body.decode(), parse_constant=_no_number, object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the message is not UTF-8: byte {error.start} is invalid", hint="send JSON in UTF-8") from error
    except RecursionError as error:
        raise InvalidInput("the message is nested too deeply", hint="a request has three levels") from error
    except ValueError as error:
        raise InvalidInput(f"the message is not JSON: {str(error)[:200]}", hint="send a JSON object") from error
    if not isinstance(found, dict):
        raise InvalidInput("the message is JSON, but not an object", hint="send a JSON object")
    _check(found, _DEEPEST)
    return found


def _check(value: Any, levels: int) -> None:
    if levels == 0:
        raise InvalidInput("the message is nested too deeply", hint="a request has three levels")
    if isinstance(value, str) and not is_plain(value):
        raise InvalidInput("the message has a text with a NUL or an incomplete character", hint="send JSON in UTF-8")
    if isinstance(value, dict):
        for key, item in value.items():
            _check(key, levels)
            _check(item, levels - 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, levels - 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")
