"""What goes on beside a training, each until its turn to end. A companion is anything that can be stopped within a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Protocol

from onward.clock import Clock
from onward.supervisor.background import never_hurts_training

_FOR_THE_END_RECORD = 3.0  # seconds of the job


class Turn(IntEnum):
    """In which order companions end: those that look at the training before those that carry what it left."""

    OWN_CHECKPOINTS = auto()
    TIME_LIMIT = auto()
    SAMPLES = auto()
    PIPELINE = auto()
    PUSH = auto()
    RELAY = auto()
    EVENT_FILES = auto()
    MIRROR = auto()
    OUTPUT = auto()
    RUN_FOLDER = auto()


_CARRIERS = (Turn.PIPELINE, Turn.PUSH, Turn.MIRROR, Turn.OUTPUT)


class Stop(Protocol):
    def __call__(self, *, within: float) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Companion:
    turn: Turn
    stop: Stop
    seconds: float
    longest: float
    last: Callable[[], object] | None

    def end(self, left: float) -> None:
        self.stop(within=max(min(left - _FOR_THE_END_RECORD, self.longest), self.seconds))
        if self.last:
            self.last()


class Companions:
    """They start in whatever order the training needs, and end in that of their turns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._living: list[Companion] = []

    def add(self, turn: Turn, stop: Stop, *, seconds: float = 1.0, longest: float = 0.0, last: Callable[[], object] | None = None) -> None:
        """One that has started. It is waited for so many `seconds`, or for the `longest` time if the job has that. `last`: once stopped."""
        self._living.append(Companion(turn=turn, stop=stop, seconds=seconds, longest=longest, last=last))

    def end(self, turn: Turn, *, until: float) -> None:
        for companion in [companion for companion in self._living if companion.turn is turn]:
            self._living.remove(companion)
            companion.end(until - self._clock.now())

    def end_all(self, *, until: float) -> None:
        """`until`: when the job ends, in unix seconds."""
        for turn in Turn:
            self.end(turn, until=until)

    def abandon(self) -> None:
        """The leg failed. What only carries goes on until this process ends: storage that comes back gets the last lines."""
        now = self._clock.now()
        for turn in Turn:
            if turn not in _CARRIERS:
                with never_hurts_training(f"ending the training's {turn.name.lower().replace('_', ' ')}"):
                    self.end(turn, until=now)
