"""A name for a run that was given none: two words and a number, as MLflow's own server makes them."""

from __future__ import annotations

import secrets

_HOW = "able amber bold brisk calm clear crisp eager fair fleet fresh glad grand keen kind lively lucid merry neat quick steady"
_WHAT = "auk bear crane deer dove eagle eel elk finch fox gull hare heron ibis jay kite lark lynx mink newt otter owl rook swan tern"


def new_name() -> str:
    return f"{secrets.choice(_HOW.split())}-{secrets.choice(_WHAT.split())}-{secrets.randbelow(1000)}"
