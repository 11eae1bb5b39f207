"""When to ask the training to stop, and when to stop waiting for it. Pure arithmetic on measured times; it learns while the leg runs.

The lead is the sum of three times: from the request until the training has saved and left, to publish its newest checkpoint at the
rate this store has shown lately, and a margin. Each is a recent quantile, so that one slow hour is forgotten within a few saves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from onward.model.run import Leg
from onward.model.stop_reason import StopReason

_KEPT = 64  # timings of each kind: older ones weigh nothing
_HALF_LIFE = 600.0  # seconds after which a save or a publish counts half as much as the newest
_HALF_LIFE_LEGS = 2  # there is one stop a leg, so stops are weighed by legs
_USUAL = 0.6  # quantile of saves and publishes
_CHANGED = 2.0  # times slower or faster than usual: the store is no longer what it was, and the newest alone counts
_STOP_QUANTILE = 0.9
_SAFETY = 1.25  # on a stop that was measured: the next one may be slower
_SAFETY_OF_RATES = (0.1, 40.0)  # on publishes, of which there are more: share, and seconds at most
_SMALL = 64 << 20  # bytes: below this a publish costs the same whatever its size
_LEAST_FOR_SEVERAL = 10.0  # seconds: several processes must agree, save and leave together
_NEXT_CHECK = 10.0  # seconds until a training looks whether it should stop, while no stop has been measured
_UNKNOWN_STOP = (120.0, 0.05)  # seconds, but no more than this share of the leg, while nothing is known
_UNKNOWN_PUBLISH = (120.0, 0.02)
_MOST_FOR_A_GUESS = 1800.0  # seconds to publish a state whose size is only a guess
_MARGIN = (1.0, 30.0, 0.02)  # seconds: least, most, share of the leg
_MOST_OF_A_LEG = (0.5, 0.35)  # to save and publish; to publish
_LAST_SECONDS = 10.0  # before the deadline: to end the leg, where nothing more can be published
_PROBE_EVERY = 300.0  # seconds, near the end of a leg
_PROBE_WITHIN = 1800.0  # seconds before the training would be asked: from then on the store's rate must be known
_PROBE_BYTES = (_SMALL, 1 << 30, 0.01)  # least, most, share of a checkpoint
_SAME_TIME = 120.0  # seconds: a probe so soon after a publish met the same store, so the two can be compared
_PLAUSIBLE = 4.0  # times as long
_COMPARISONS = 8  # in a leg
_PUBLISH_BY_PROBE = 1.5  # times as long for the same bytes, until the two have been compared: a publish also reads and hashes


@dataclass(frozen=True, kw_only=True)
class StopPlan:
    """Seconds before the job's deadline."""

    ask: float  # ask the training to save and stop
    kill: float  # stop waiting for it: what it saved must still be published

    def ask_at(self, deadline: float | None) -> float | None:
        return None if deadline is None else deadline - self.ask

    def kill_at(self, deadline: float | None, *, asked_at: float | None = None) -> float | None:
        """A training that was asked late has its time to save all the same: one that lies on the node is better than none."""
        if deadline is None:
            return None
        saved_by = asked_at + self.ask - self.kill if asked_at is not None else deadline - self.kill
        return max(deadline - self.kill, min(saved_by, deadline - min(self.kill, _LAST_SECONDS)))


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long something took, when, and for how many bytes."""

    at: float
    seconds: float
    bytes: int = 0

    def for_size(self, size: int) -> float:
        """What the same would take for a checkpoint of this size, at the same rate."""
        return self.seconds * max(size, _SMALL) / max(self.bytes, _SMALL)


def _timings() -> deque[Timing]:
    return deque(maxlen=_KEPT)


@dataclass(kw_only=True)
class StopPlanner:
    """What is known about saving, publishing and stopping, from earlier legs and from this one so far."""

    limit: float | None  # seconds that this leg has; None: no limit
    several: bool = False  # more than one process
    set_lead: float | None = None  # by the user
    state_bytes: int | None = None  # a guess at the size of a checkpoint, while none has been saved
    store_rate: float | None = None  # bytes a second, measured without a checkpoint
    _stops: deque[Timing] = field(default_factory=_timings)
    _saves: deque[Timing] = field(default_factory=_timings)
    _publishes: deque[Timing] = field(default_factory=_timings)
    _ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_COMPARISONS))  # of publishes to probes beside them
    _under_way: Timing | None = None  # a publish that began at `at`
    newest_bytes: int = 0  # of the newest checkpoint

    @classmethod
    def of(cls, legs: Iterable[Leg], *, limit: float | None, several: bool = False, set_lead: float | None = None) -> StopPlanner:
        planner = cls(limit=limit, several=several, set_lead=set_lead)
        for leg in sorted(legs, key=lambda leg: leg.number):
            planner._learn(leg)
        return planner

    def _learn(self, leg: Leg) -> None:
        for event in leg.published:
            self.saved(at=event.at, seconds=event.save_seconds, size=event.bytes)
            self.published(at=event.at, seconds=event.stage_seconds, size=event.bytes)
        for missed in leg.missed:
            if missed.seconds:  # cut off by the deadline: it would have taken longer than that
                self.published(at=missed.at, seconds=2 * missed.seconds, size=missed.bytes)
                self.newest_bytes = missed.bytes
        # where the scheduler ended the job, the time says nothing about a planned stop
        hurried = leg.asked is not None and leg.asked.reason is StopReason.SIGNAL
        if leg.own and leg.own.stop_seconds is not None and not hurried:
            self.stopped(at=leg.own.at, seconds=leg.own.stop_seconds, cut_short=leg.own.stop_cut)

    # ── what is learned ───────────────────────────────────────────────────────

    def saved(self, *, at: float, seconds: float, size: int) -> None:
        if seconds > 0:
            self._saves.append(Timing(at=at, seconds=seconds, bytes=size))
        self.newest_bytes = size

    def publishing(self, *, at: float, size: int) -> None:
        """A publish has begun: one that takes longer than others did is known to be slow before it ends."""
        self._under_way = Timing(at=at, seconds=0.0, bytes=size)

    def published(self, *, at: float, seconds: float, size: int) -> None:
        """`seconds` is 0 where nobody measured: put together from shares that several nodes carried over, for a killed leg."""
        if seconds > 0:
            self._publishes.append(Timing(at=at, seconds=seconds, bytes=size))
        self._under_way = None

    def probed(self, *, at: float, seconds: float, size: int) -> None:
        """The store took so long for a small file. Beside a publish, this says how the two compare; alone, how the store is now."""
        last = self._publishes[-1] if self._publishes else None
        if last is None:
            self.store_rate = size / max(seconds, 1e-3) / _PUBLISH_BY_PROBE
        elif at - last.at <= _SAME_TIME:
            ratio = last.for_size(size) / max(seconds, 1e-3)
            if 1 / _PLAUSIBLE <= ratio <= _PLAUSIBLE:  # else the store has just changed, and the two did not meet the same one
                self._ratios.append(ratio)
        else:
            self._publishes.append(Timing(at=at, seconds=seconds * self._ratio, bytes=size))

    @property
    def _ratio(self) -> float:
        return sorted(self._ratios)[len(self._ratios) // 2] if self._ratios else _PUBLISH_BY_PROBE

    def probe_size(self, now: float, deadline: float | None) -> int:
        """Bytes of a probe that would sharpen the plan now; 0: none."""
        if deadline is None or self._under_way or self.set_lead is not None:
            return 0
        if not self._publishes:
            return 0 if self.store_rate else _SMALL
        least, most, share = _PROBE_BYTES
        if self.newest_bytes * share < least / 8:  # so small that it is published in a moment, however slow the store is
            return 0
        age = now - self._publishes[-1].at
        compare = len(self._ratios) < _COMPARISONS and age <= _SAME_TIME / 2
        near = now >= deadline - self.plan(now).ask - _PROBE_WITHIN
        return int(min(max(share * self.newest_bytes, least), most)) if compare or (near and age >= _PROBE_EVERY) else 0

    def stopped(self, *, at: float, seconds: float, cut_short: bool = False) -> None:
        """`cut_short`: it was killed while it was still stopping, so it needs longer than this."""
        self._stops.append(Timing(at=at, seconds=2 * seconds if cut_short else seconds))

    def spent(self, now: float) -> float:
        """On the publish that is under way."""
        return now - self._under_way.at if self._under_way else 0.0

    # ── the plan ──────────────────────────────────────────────────────────────

    def plan(self, now: float) -> StopPlan:
        length = 86400.0 if self.limit is None else max(self.limit, 0.001)  # a deadline that has passed: ask at once
        least, most, share = _MARGIN
        margin = min(max(share * length, least), most)
        kill = min(self._publish_seconds(now, length) + margin, _MOST_OF_A_LEG[1] * length)
        ask = min(self._stop_seconds(length) + kill, _MOST_OF_A_LEG[0] * length)
        if self.set_lead is not None:
            ask = min(self.set_lead, 0.9 * length)
            kill = min(kill, ask / 2)
        return StopPlan(ask=ask, kill=kill)

    def _publish_seconds(self, now: float, length: float) -> float:
        """For the newest checkpoint, at this store's recent rate."""
        usual = quantile(self._publishes, _USUAL, size=self.newest_bytes)
        if usual is not None:
            newest = self._publishes[-1].for_size(self.newest_bytes)
            measured = usual if usual / _CHANGED <= newest <= usual * _CHANGED else newest
            return _with_safety(max(measured, self._under_way_seconds(now)))
        seconds, share = _UNKNOWN_PUBLISH
        default = min(seconds, share * length)
        if self.state_bytes and self.store_rate:
            return max(default, min(_with_safety(self.state_bytes / self.store_rate), _MOST_FOR_A_GUESS))
        return default

    def _under_way_seconds(self, now: float) -> float:
        """What a publish that is under way takes at least."""
        if self._under_way is None:
            return 0.0
        return replace(self._under_way, seconds=now - self._under_way.at).for_size(self.newest_bytes)

    def _stop_seconds(self, length: float) -> float:
        """From the request until the training has left."""
        least = min(_LEAST_FOR_SEVERAL, 0.15 * length) if self.several else 1.0
        save = quantile(self._saves, _USUAL, size=self.newest_bytes)
        stops = quantile(by_leg(self._stops), _STOP_QUANTILE)
        if stops is not None:
            return _SAFETY * max(stops, save or 0.0, least / _SAFETY)
        if save is not None:
            return max(_SAFETY * save + min(_NEXT_CHECK, _UNKNOWN_STOP[1] * length), least)
        seconds, share = _UNKNOWN_STOP
        return max(min(seconds, share * length), least)


def _with_safety(publish: float) -> float:
    share, most = _SAFETY_OF_RATES
    return publish + min(share * publish, most)


def by_leg(stops: Iterable[Timing]) -> list[Timing]:
    """The same timings, one leg apart, so that they are weighed by legs and not by how long the queue was."""
    return [replace(stop, at=index * _HALF_LIFE / _HALF_LIFE_LEGS) for index, stop in enumerate(stops)]


def quantile(timings: Sequence[Timing] | deque[Timing], share: float, *, size: int = 0) -> float | None:
    """The seconds that `share` of these took at most, scaled to a checkpoint of `size` bytes; recent ones count more."""
    if not timings:
        return None
    newest = max(timing.at for timing in timings)
    weighed = sorted((timing.for_size(size or timing.bytes), 0.5 ** ((newest - timing.at) / _HALF_LIFE)) for timing in timings)
    wanted = share * sum(weight for _, weight in weighed)
    reached = 0.0
    for seconds, weight in weighed:
        reached += weight
        if reached >= wanted:
            return seconds
    return weighed[-1][0]
