"""Run ids: eight letters for the runs we execute, 32 hex digits where MLflow's client demands them. The one follows from the other."""

from __future__ import annotations

import hashlib
import re
import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_HEX = re.compile(r"[0-9a-f]{32}")


def new_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def is_hex_id(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


def hex_id(run: str) -> str:
    """The id by which MLflow's client knows a run: the same on every machine, so that a node needs no database to tell it."""
    return run if is_hex_id(run) else hashlib.sha256(f"onward run {run}".encode()).hexdigest()[:32]
