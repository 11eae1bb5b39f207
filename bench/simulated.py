"""Three weeks of training in simulated time: how much of it is kept, and what each way of planning the stop gives away.

Beside the plan that learns stand a fixed lead of ten minutes and the plan of version 0.1 (made once, before the leg, from twice the
slowest stop and publish ever seen). The loop, the plan and the order of publishing are the product's own; the world is simulated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from onward.model.run import Leg
from onward.supervisor.stop.plan import StopPlan
from tests.simulation.leg import Policy
from tests.simulation.run import Account, simulate
from tests.simulation.world import Setup


def ten_minutes(_legs: Iterable[Leg], _limit: float) -> Callable[[StopPlan], StopPlan]:
    return lambda _learned: StopPlan(ask=600.0, kill=300.0)


def version_0_1(legs: Iterable[Leg], limit: float) -> Callable[[StopPlan], StopPlan]:
    stops = [leg.own.stop_seconds for leg in legs if leg.own and leg.own.stop_seconds is not None]
    stops += [published.save_seconds for leg in legs for published in leg.published]
    stages = [published.stage_seconds for leg in legs for published in leg.published]
    kill = min(2 * max(stages, default=0.02 * limit) + 60.0, 0.25 * limit)
    ask = min(max(2 * max(stops, default=0.05 * limit), 10.0) + kill, 0.5 * limit)
    return lambda _learned: StopPlan(ask=ask, kill=kill)


def row(name: str, accounts: list[Account]) -> str:
    given = sorted(seconds for account in accounts for seconds in account.given_away)
    first = [account.legs[0].given_away for account in accounts if account.legs[0].given_away is not None]
    lost = statistics.mean(account.lost_at_limits / len(account.legs) for account in accounts)
    return (
        f"{name:<28} goodput {min(a.goodput for a in accounts):.4f}–{max(a.goodput for a in accounts):.4f}   given away a leg: "
        f"mean {statistics.mean(given):.0f} s, median {statistics.median(given):.0f}, 95 % {given[int(0.95 * len(given))]:.0f}, "
        f"max {given[-1]:.0f}, first leg {max(first, default=0.0):.0f}; trained and lost at limits {lost:.0f} s a leg"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="seeds")
    options = parser.parse_args()
    setup = Setup()
    size, every = f"{setup.checkpoint / 1e9:.0f} GB", f"{setup.every / 60:.0f} min"
    store = f"store {setup.store / 1e9:.0f} GB/s with an hour a day at {setup.slow / 1e9:.1f} GB/s"
    print(f"{options.runs} runs of {setup.days:.0f} days, {setup.nodes} nodes, {size} every {every}, {store}")
    policies: dict[str, Policy | None] = {"learns while it runs": None, "fixed, 10 minutes": ten_minutes, "version 0.1": version_0_1}
    for name, policy in policies.items():
        print(row(name, [simulate(setup, seed, policy) for seed in range(options.runs)]), flush=True)


if __name__ == "__main__":
    main()
