"""A whole simulated run, and what became of its time."""

from __future__ import annotations

from dataclasses import dataclass, field

from onward.model import events as ev
from onward.model.run import fold
from tests.histories import make_spec
from tests.simulation.clock import SimClock
from tests.simulation.leg import Policy, SimLeg
from tests.simulation.world import Setup, World


@dataclass(frozen=True, kw_only=True)
class LegAccount:
    """Seconds of one leg."""

    number: int
    end: str
    allocated: float  # up to the limit, where the leg ended as planned: what it gives back counts as lost
    trained: float
    lost_by_fault: float  # trained, and not published when a fault ended the leg
    lost_at_limit: float  # trained, and neither published nor picked up after a planned end
    given_away: float | None  # from the request to stop until the limit, at planned ends
    save: float
    publish: float  # the slowest of the last hour, measured or possible


@dataclass(kw_only=True)
class Account:
    world: World
    legs: list[LegAccount] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        """Of the time that the faults leave: what was trained and kept."""
        left = sum(leg.allocated - leg.lost_by_fault for leg in self.legs)
        return self.world.newest / left if left else 0.0

    @property
    def given_away(self) -> list[float]:
        return [leg.given_away for leg in self.legs if leg.given_away is not None]

    @property
    def lost_at_limits(self) -> float:
        return sum(leg.lost_at_limit for leg in self.legs)


def simulate(setup: Setup, seed: int, policy: Policy | None = None) -> Account:
    """Legs follow each other until the days of allocated time are used up."""
    world, clock = World.of(setup, seed), SimClock()
    account = Account(world=world)
    events: list[ev.Event] = []
    number, used = 0, 0.0
    spec = make_spec()
    while used < setup.days * 86400:
        number += 1
        clock.until(clock.now() + world.rng.uniform(*setup.queue))
        begin = clock.now()
        history = list(fold(spec, events).legs.values())
        leg = SimLeg(
            world=world,
            clock=clock,
            number=number,
            nodes=tuple(world.rng.sample(range(setup.pool), setup.nodes)),
            deadline=begin + setup.leg,
            history=history,
            shaped=policy(history, setup.leg) if policy else None,
            preempted_at=_within(world, begin, setup.preempted_every, setup.leg),
            grace=world.rng.uniform(*setup.grace),
            lost_at=_within(world, begin, setup.node_lost_every, setup.leg),
        )
        before = world.newest
        end = leg.live()
        events += leg.events
        ended = clock.now()
        planned = leg.asked_at is not None and end in ("time_limit", "killed at the limit")
        published = [event for event in leg.events if isinstance(event, ev.Published)]
        asked = leg.asked_at or ended
        measured = max((event.stage_seconds for event in published if event.at > asked - 3600), default=0.0)
        lost = max(leg.step - max(world.newest, before), 0.0)
        account.legs.append(
            LegAccount(
                number=number,
                end=end,
                allocated=setup.leg if planned else ended - begin,
                trained=leg.trained,
                lost_by_fault=lost if end in ("preempted", "node_lost") else 0.0,
                lost_at_limit=lost if end not in ("preempted", "node_lost") else 0.0,
                given_away=begin + setup.leg - leg.asked_at if planned and leg.asked_at else None,
                save=max((event.save_seconds for event in published[-2:]), default=0.0),
                publish=max(world.slowest_publish(asked - 1800, begin + setup.leg), measured),
            )
        )
        used += account.legs[-1].allocated
    return account


def _within(world: World, begin: float, every: float, leg: float) -> float | None:
    """When in this leg a fault comes, if it does."""
    after = world.rng.expovariate(1 / every)
    return begin + after if after < leg else None
