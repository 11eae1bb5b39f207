"""With what the next leg of a run is queued: its memory, and the nodes that it avoids. Pure."""

from __future__ import annotations

from onward.model.policy.leg_history import counted_legs
from onward.model.run import Leg, LegEnd, Run

LOSSES_BEFORE_EXCLUDING = 2  # of the same node


def wanted_mem(run: Run) -> int | None:
    """MiB for the next leg: what was asked, doubled for each leg that ran out of it, up to `mem-max`."""
    mem = run.resources.mem
    most = run.limits.mem_max
    for leg in counted_legs(run):
        if leg.end is LegEnd.OUT_OF_MEMORY and most:
            had = memory_of(leg, run) or (leg.own.peak_mem if leg.own else None)
            mem = max(mem or 0, min(had * 2, most) if had else most)
    return mem


def excluded_nodes(run: Run) -> tuple[str, ...]:
    """Nodes that were lost under this run more than once."""
    losses: dict[str, int] = {}
    for leg in counted_legs(run):
        if leg.end is LegEnd.NODE_LOST and leg.claimed and len(leg.claimed.hosts) == 1:
            host = leg.claimed.hosts[0]
            losses[host] = losses.get(host, 0) + 1
    return tuple(sorted(host for host, count in losses.items() if count >= LOSSES_BEFORE_EXCLUDING))


def memory_of(leg: Leg, run: Run) -> int | None:
    """MiB its job had; 0: all of the node; None: what the cluster gives where nothing is asked."""
    for submission in leg.submissions.values():
        if leg.claimed and submission.job == leg.claimed.job:
            return submission.mem
    standing = leg.submission
    return standing.mem if standing else run.resources.mem
