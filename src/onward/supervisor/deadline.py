"""When to ask the training to stop, and when to stop waiting for it: pure arithmetic on what earlier stops took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onward.model.run import Leg

_LEAST_FOR_SEVERAL = 10.0  # seconds


@dataclass(frozen=True, kw_only=True)
class StopPlan:
    """Seconds before the job's deadline."""

    ask: float  # ask the training to save and stop
    kill: float  # stop waiting: what is saved must still be carried over

    def ask_at(self, deadline: float | None) -> float | None:
        return None if deadline is None else deadline - self.ask

    def kill_at(self, deadline: float | None) -> float | None:
        return None if deadline is None else deadline - self.kill


def plan_stop(legs: Iterable[Leg], *, limit: float | None, several: bool = False) -> StopPlan:
    """From the slowest stop, save and sync seen so far; from a share of the limit while nothing is known yet.

    `limit` is the length of the leg. A stop that took longer than it was given doubles what the next one gets, and
    asking never takes more than half of a leg. `several` processes must agree, save and leave together, which is never done in a second.
    """
    length = 86400.0 if limit is None else max(limit, 0.001)  # a deadline that has passed: ask at once
    margin = min(max(0.03 * length, 1.0), 60.0)
    stops: list[float] = []
    stages: list[float] = []
    for leg in legs:
        if leg.own and leg.own.stop_seconds is not None:
            stops.append(leg.own.stop_seconds)
        stages.extend(p.stage_seconds for p in leg.published)
        stops.extend(p.save_seconds for p in leg.published)
    sync = 2 * max(stages, default=0.02 * length)
    stop = 2 * max(stops, default=0.05 * length)
    kill = min(sync + margin, 0.25 * length)
    least = min(_LEAST_FOR_SEVERAL, 0.15 * length) if several else 1.0
    ask = min(max(stop, least) + kill, 0.5 * length)
    return StopPlan(ask=ask, kill=kill)
