"""A token in Rodan's answer to a login, and for how long it may be used. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_LONGEST = 300.0  # seconds that a token is used again, before the next is asked for
_TOKEN = re.compile(r"[!-~]{1,512}\Z")
_ENDS = ("expires", "expires_at", "expiry", "exp")  # as applications call the moment; unix seconds or ISO 8601


@dataclass(frozen=True, kw_only=True)
class RodanToken:
    text: str = field(repr=False)
    until: float  # unix seconds


def token_in(body: bytes, *, now: float) -> RodanToken | None:
    try:
        data = json.loads(body)
        text = data["token"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(text, str) or not _TOKEN.match(text):
        return None
    ends = [now + _LONGEST, *_ends(data, now), *_ends(_claims(text), now)]
    return RodanToken(text=text, until=min(ends))


def _ends(record: Mapping[str, Any], now: float) -> list[float]:
    found = [_moment(record.get(name)) for name in _ENDS]
    seconds = record.get("expires_in")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        found.append(now + seconds)
    return [end for end in found if end is not None]


def _moment(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _claims(text: str) -> Mapping[str, Any]:
    """What a JSON Web Token says of itself; a plain token says nothing."""
    parts = text.split(".")
    if len(parts) == 3:
        with suppress(ValueError):
            found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
            return found if isinstance(found, dict) else {}
    return {}
