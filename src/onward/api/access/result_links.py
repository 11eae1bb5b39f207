"""Addresses of results: who has one may fetch that one result until it closes, without a token. The gateway signs them in its replies.

A sender is another application, whose user has no login here. The address names request, result and end, and its signature is made
with a key that only the store of requests holds; it opens nothing else, and it can only be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from onward.api.access.caller import ApiCaller
from onward.errors import OnwardError
from onward.tracker.access.tokens import Scope

if TYPE_CHECKING:
    from onward.tracker.requests.store import Requests

_PATH = re.compile(r"/api/v1/requests/(?P<id>[^/]+)/results/(?P<name>.+)")


class ResultLinks:
    def __init__(self, requests: Callable[[], Requests | None], now: Callable[[], float]) -> None:
        self._requests = requests
        self._now = now

    def wanted(self, method: str, path: str, query: bytes) -> bool:
        return method in ("GET", "HEAD") and b"signature=" in query and _PATH.fullmatch(path) is not None

    def check(self, path: str, query: bytes) -> ApiCaller | None:
        """Who it lets in: nobody but for this path. None: it was never signed here, or it has closed."""
        found, store = _PATH.fullmatch(path), self._requests()
        given = parse_qs(query.decode("latin-1"))
        signature, expires = given.get("signature", [""])[0], given.get("expires", [""])[0]
        if found is None or store is None or not re.fullmatch(r"[0-9]{1,12}", expires):
            return None
        try:
            store.verify(found["id"], found["name"], int(expires), signature, now=self._now())
        except OnwardError:
            return None
        return ApiCaller(token=f"the address of a result of {found['id']}", scope=Scope.LINK)
