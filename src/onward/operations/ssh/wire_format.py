"""How requests and answers travel between two machines: a line of JSON each, told from other people's lines by its first byte.

A login shell may print whatever its owner wrote into its profile. So a line of ours begins with a record separator (as in
RFC 7464), and every other line is noise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onward import errors
from onward.errors import OnwardError

MARK = b"\x1e"


def encode(data: Mapping[str, Any]) -> bytes:
    return MARK + json.dumps(data).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """None for noise. A shell's last words without a newline may stand before ours."""
    start = line.find(MARK)
    if start < 0 or not line.endswith(b"\n"):
        return None
    try:
        data = json.loads(line[start + 1 :])
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


# ── errors ────────────────────────────────────────────────────────────────────


def error_to_json(error: OnwardError) -> dict[str, Any]:
    return {"classes": [cls.__name__ for cls in type(error).__mro__], "message": error.message, "hint": error.hint}


def error_from_json(data: Mapping[str, Any], *, host: str) -> OnwardError:
    """Of the nearest class that this side knows, and with the host's name: its words may speak of a PATH or a disk."""
    message = str(data.get("message", ""))
    message = message if host in message else f"{message} (on {host})"
    for name in data.get("classes", ()):
        cls = getattr(errors, str(name), None)
        if isinstance(cls, type) and issubclass(cls, OnwardError):
            return cls(message, hint=str(data.get("hint", "")))
    return OnwardError(message, hint=str(data.get("hint", "")))
