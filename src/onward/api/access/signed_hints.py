"""Signed hints: let in by their signature, without a token that travels. HMAC-SHA256 over id.timestamp.body.

The headers are those of standardwebhooks.com. A hint is let in for five minutes around its time, and once; any webhook token that
stands may have signed it, so that a new secret can be brought out before the old one is revoked. The key is the SHA-256 of the token:
what the store keeps of it. Whoever can read the store could thus forge hints; a hint makes the server look, and nothing more.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from onward.api.access.caller import ApiCaller
from onward.clock import Clock
from onward.tracker.access.token_store import TokenStore
from onward.tracker.access.tokens import Scope, Token
from onward.tracker.ingest.scheduler_hints import take_hint
from onward.tracker.store import Tracker

PATH = "/webhooks/hints"
WINDOW = 300.0  # seconds
_MOST = 16 << 10  # bytes of a hint
_PATIENCE = 5.0  # seconds for its body
_HEADERS = (b"webhook-id", b"webhook-timestamp", b"webhook-signature")
_ID = re.compile(r"[A-Za-z0-9_.-]{8,128}")
_TIME = re.compile(r"[0-9]{1,12}")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class SignedHints:
    def __init__(self, tracker: Tracker, tokens: TokenStore, clock: Clock) -> None:
        self._tracker = tracker
        self._tokens = tokens
        self._clock = clock

    def wanted(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> bool:
        return method == "POST" and path == PATH and b"webhook-signature" in headers

    async def check(self, headers: Mapping[bytes, bytes], receive: Receive) -> tuple[ApiCaller | None, Receive]:
        """Who signed it, and the body to go on with."""
        body = await _body(receive)
        if body is None:
            return None, receive
        id, timestamp, signatures = (headers.get(name, b"").decode("latin-1") for name in _HEADERS)
        caller = await asyncio.to_thread(self._verify, id, timestamp, signatures, body)

        async def again() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        return caller, again

    def _verify(self, id: str, timestamp: str, signatures: str, body: bytes) -> ApiCaller | None:
        now = self._clock.now()
        if not _ID.fullmatch(id) or not _TIME.fullmatch(timestamp) or abs(now - int(timestamp)) > WINDOW:
            return None
        message = f"{id}.{timestamp}.".encode() + body
        shown = [text.removeprefix("v1,") for text in signatures.split() if text.startswith("v1,")][:4]
        for token in self._tokens.all():
            if token.scope is Scope.WEBHOOK and token.stands(now) and any(_fits(token, message, text) for text in shown):
                return ApiCaller.of(token) if take_hint(self._tracker, hint_id(token.id, id), now) else None
        return None


def hint_id(token: str, id: str) -> str:
    return f"{token}:{id}"


def _fits(token: Token, message: bytes, shown: str) -> bool:
    signature = base64.b64encode(hmac.new(token.digest.encode(), message, hashlib.sha256).digest())
    return hmac.compare_digest(signature, shown.encode("latin-1"))


async def _body(receive: Receive) -> bytes | None:
    """None where it is too long, too slow, or its sender has gone."""
    body = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += bytes(message.get("body", b""))
                if len(body) > _MOST:
                    return None
                if not message.get("more_body"):
                    return body
    except TimeoutError:
        return None
