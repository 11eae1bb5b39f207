"""Processes of earlier legs that still run on this machine: ended before the next leg touches their files or trains itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from onward.sdk import contract
from onward.supervisor.processes.guard import end_marked, marked

log = logging.getLogger(__name__)


def leg_mark(run_id: str, leg: int) -> dict[str, str]:
    """What the environment of a leg's training and of all it started has, and nobody else's."""
    return {contract.RUN_ID: run_id, contract.LEG: str(leg)}


def end_survivors(run_id: str, legs: Iterable[int]) -> set[int]:
    """End what these legs of the run left running here. Returns the legs that have processes which cannot be ended: those hang in
    the kernel, and their files must not be touched."""
    marks = {leg: leg_mark(run_id, leg) for leg in legs}
    ended, stuck = end_marked(marks.values())
    if ended:
        log.warning("ended %d processes that earlier legs had left running on this machine", ended)
    return {leg for leg, mark in marks.items() if marked([mark])} if stuck else set()


def is_alive(run_id: str, leg: int) -> bool:
    """Whether something of this leg's training runs on this machine."""
    return bool(marked([leg_mark(run_id, leg)]))
