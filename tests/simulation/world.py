"""The world of a simulated run: a store whose rate changes by the hour, faults, and what each leg finds. All drawn from a seed."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field

DAY = 86400.0
HOUR = 3600.0
GB = 10**9
PROBE_NOISE = 0.05


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What is simulated. Rates in bytes a second, times in seconds."""

    days: float = 21.0  # of allocated time
    leg: float = DAY
    nodes: int = 8
    pool: int = 24  # nodes that jobs may get
    checkpoint: int = 80 * GB
    every: float = 1800.0
    save: float = 12.0  # that a save blocks the training
    step: float = 1.5
    store: float = 1.0 * GB
    slow: float = 0.1 * GB
    slow_every: float = 24 * HOUR  # on average; each lasts an hour
    jitter: float = 0.15
    probe_bias: float = 1.8  # a bare write is faster than a publish, which reads and hashes too
    preempted_every: float = 4 * DAY
    node_lost_every: float = 6 * DAY
    grace: tuple[float, float] = (30.0, 300.0)
    queue: tuple[float, float] = (0.0, 4 * HOUR)
    start: float = 40.0  # from the start of a job until the training runs, without the restore
    keep: int = 3
    disk: int = 4 * 80 * GB  # free on each node


class Store:
    """Its rate is piecewise constant; a copy takes as long as its bytes take from when it begins."""

    def __init__(self, setup: Setup, rng: random.Random, horizon: float) -> None:
        self._times, self._rates = [0.0], [setup.store]
        at = rng.expovariate(1 / setup.slow_every)
        while at < horizon:
            self._times += [at, at + HOUR]
            self._rates += [setup.slow, setup.store]
            at += HOUR + rng.expovariate(1 / setup.slow_every)

    def finish(self, began: float, size: float, share: float = 1.0) -> float:
        index = bisect_right(self._times, began) - 1
        at, left = began, size
        while index + 1 < len(self._times):
            end, rate = self._times[index + 1], self._rates[index] * share
            if (end - at) * rate >= left:
                break
            left -= (end - at) * rate
            at, index = end, index + 1
        return at + left / (self._rates[index] * share)


@dataclass(kw_only=True)
class OnNode:
    """A committed checkpoint that lies on a node."""

    step: int
    node: int
    leg: int


@dataclass(kw_only=True)
class World:
    setup: Setup
    rng: random.Random
    store: Store
    published: list[tuple[int, int]] = field(default_factory=list)  # (leg, step)
    on_nodes: list[OnNode] = field(default_factory=list)
    deleted_unpublished: list[tuple[int, int]] = field(default_factory=list)  # a broken promise
    skipped_saves: int = 0  # for lack of room on the node

    @classmethod
    def of(cls, setup: Setup, seed: int) -> World:
        rng = random.Random(seed)
        return cls(setup=setup, rng=rng, store=Store(setup, rng, horizon=4 * setup.days * DAY))

    @property
    def newest(self) -> int:
        """The newest published step; 0: none, the run starts from its beginning."""
        return max((step for _, step in self.published), default=0)

    def has_room(self, node: int, *, restored: bool) -> bool:
        """For one more checkpoint, beside those that wait there and the copy that the leg started from, if it made one."""
        waiting = sum(kept.node == node for kept in self.on_nodes)
        copy = 1 if restored and self.setup.disk >= 3 * self.setup.checkpoint else 0
        return (waiting + copy + 1) * self.setup.checkpoint <= self.setup.disk

    def slowest_publish(self, since: float, until: float) -> float:
        """The most that a publish which begins in this time would take, as it is measured."""
        times = [since + n * (until - since) / 60 for n in range(61)]
        noise = (1 + PROBE_NOISE) / (1 - self.setup.jitter)
        return noise * max(self.store.finish(at, self.setup.checkpoint) - at for at in times)

    def save_seconds(self) -> float:
        return self.setup.save * self.rng.uniform(1 - self.setup.jitter, 1 + self.setup.jitter)

    def publish_until(self, began: float) -> float:
        return self.store.finish(began, self.setup.checkpoint, share=self.rng.uniform(1 - self.setup.jitter, 1.0))

    def delete_from_node(self, kept: OnNode) -> None:
        """As the product does: and it must not have been needed any more."""
        self.on_nodes.remove(kept)
        if kept.step > self.newest:
            self.deleted_unpublished.append((kept.leg, kept.step))
