"""Secrets that a request may hold: the query of an address, which often signs it, and settings that are called like one. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from onward.model.requests.request import Request

_QUERY_LEFT_OUT = "?…"
_NOT_KEPT = "(not kept)"
_SECRET = re.compile(
    r"token(?![a-z])|secret|passw|api.?key|credential|private.?key|signature|(^|[^a-z])(auth|pwd|key)([^a-z]|$)", re.IGNORECASE
)


def redacted(request: Request) -> Request:
    """As it is kept when its run has all that it needs."""
    return replace(
        request,
        inputs=tuple(replace(one, url=_without_query(one.url)) for one in request.inputs),
        settings={name: _NOT_KEPT if _SECRET.search(name) and value is not None else value for name, value in request.settings.items()},
    )


def _without_query(url: str) -> str:
    address, mark, _ = url.partition("?")
    return address + _QUERY_LEFT_OUT if mark else url.partition("#")[0]
