"""Stitching: which points of which leg show. Pure.

A leg that resumed at step s supersedes what earlier legs logged beyond s: those points are kept, and hidden. A leg that
did not say where it resumed is taken at its word: at its first step in this series it goes on, and what earlier legs
have from there is hidden. Metrics of the machine are told by time, not by steps: nothing supersedes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SYSTEM_PREFIX = "system/"  # begins the keys of what the supervisor samples; their step is the unix second
NOTHING = -(1 << 63)


def limits(key: str, firsts: Mapping[int, int], resumed: Mapping[int, int]) -> dict[int, int | None]:
    """The last step of each leg that shows; None: all of it.

    `firsts`: the lowest step of each leg that has points in this series. `resumed`: the step at which a leg went on, of the legs that told.
    """
    if key.startswith(SYSTEM_PREFIX):
        return dict.fromkeys(firsts)
    shown: dict[int, int | None] = {}
    limit: int | None = None
    for leg in sorted({*firsts, *resumed}, reverse=True):
        if leg in firsts:
            shown[leg] = limit
        cut = resumed[leg] if leg in resumed else max(firsts[leg] - 1, NOTHING)
        limit = cut if limit is None else min(limit, cut)
    return shown


def first_steps(rows: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The lowest step of each leg, from (leg, step) pairs."""
    firsts: dict[int, int] = {}
    for leg, step in rows:
        firsts[leg] = min(firsts.get(leg, step), step)
    return firsts
