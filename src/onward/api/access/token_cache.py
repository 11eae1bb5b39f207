"""Tokens at hand: those seen in the last moments are known without asking the store, so that the gate costs microseconds.

A token that is revoked through this server is forgotten at once; one that is revoked from outside, or whose run has ended, within
`FRESH` seconds.
"""

from __future__ import annotations

from onward.api.access.caller import ApiCaller
from onward.clock import Clock
from onward.errors import StorageUnavailable
from onward.tracker.access.token_store import TokenStore
from onward.tracker.access.tokens import Scope

FRESH = 2.0
PATIENCE = 60.0
_ROOM = 4096


class TokenCache:
    def __init__(self, store: TokenStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[str, tuple[float, ApiCaller]] = {}

    def known(self, text: str) -> ApiCaller | None:
        found = self._seen.get(text)
        return found[1] if found and found[0] - FRESH <= self._clock.now() < found[0] else None  # a clock may be set back

    def check(self, text: str) -> ApiCaller | None:
        """Ask the store; blocks. A login code opens nothing but the login."""
        now = self._clock.now()
        try:
            token = self._store.check(text, now=now)
        except StorageUnavailable:
            held = self._seen.get(text)  # while the database is away, who was known a moment ago still is: probes must be answered
            if held and now < held[0] + PATIENCE:
                return held[1]
            raise
        if token is None or token.scope is Scope.LOGIN:
            self._seen.pop(text, None)
            return None
        caller = ApiCaller.of(token)
        if len(self._seen) >= _ROOM:
            self._seen.clear()
        until = now + FRESH if token.ends is None else min(now + FRESH, token.ends)
        self._seen[text] = (until, caller)
        return caller

    def forget(self) -> None:
        self._seen.clear()
