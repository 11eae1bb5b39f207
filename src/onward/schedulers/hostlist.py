"""Hosts as Slurm writes them, node01,node[03-05], and as names."""

from __future__ import annotations

import itertools
import math
import re

from onward.errors import InvalidInput

_PART = r"(?:[^,\[\]]|\[[^\[\]]*\])+"
_MOST = 100_000


def expand_hosts(hosts: str | None) -> list[str]:
    """`r[1-2]n[01,03-04]` are six names. InvalidInput where that is not how hosts are written."""
    text = hosts or ""
    if text and not re.fullmatch(f"{_PART}(?:,{_PART})*", text):
        raise _wrong(text)
    found: list[str] = []
    for part in re.findall(_PART, text):
        pieces = [_choices(piece) for piece in re.split(r"(\[[^\]]*\])", part) if piece]
        if math.prod(map(len, pieces)) > _MOST:
            raise _wrong(text)
        found += ["".join(names) for names in itertools.product(*pieces)]
    return found


def _choices(piece: str) -> list[str]:
    if not piece.startswith("["):
        return [piece]
    names: list[str] = []
    for span in piece[1:-1].split(","):
        first, dash, last = span.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or (dash and int(last) - int(first) > _MOST):
            raise _wrong(piece)
        names += [f"{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)]
    return names


def _wrong(text: str) -> InvalidInput:
    return InvalidInput(f"hosts: found {text!r}, expected names such as node01,node[03-07]")
