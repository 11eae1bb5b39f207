"""Paths that no honest client sends. They are refused at the gate, before any route can take them for something.

Filters of strings are not what keeps files safe (directory handles in `tracker/runs/artifact_files.py` do that); this only makes
trouble visible early, and the same for every route.
"""

from __future__ import annotations

import re

_ODD = re.compile(r"[\x00-\x1f\x7f\\#]|%(?:2e|2f|5c|23|25|00)", re.IGNORECASE)


def path_problem(path: str) -> str | None:
    """Why a decoded path is refused, or None."""
    found = _ODD.search(path)
    if found:
        return f"the path contains {found[0]!r}"
    if "/." in path and any(part in (".", "..") for part in path.split("/")):
        return "a part of the path is '.' or '..'"
    if ";" in path and any(part.partition(";")[0] in (".", "..") for part in path.split("/")):
        return "a part of the path is '.' or '..'"
    return None
