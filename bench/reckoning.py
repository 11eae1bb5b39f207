"""What a trace of trainings says: pauses between lives, steps repeated and lost, and how much of the allocated time was kept.

A trace is what every training of a bench writes, one line an event: `begin` (with the step it goes on from, and its job), `step`, `save`
and `end` (its last act, where it was not killed), each with its time and the life, that is the process, it belongs to. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(kw_only=True)
class Life:
    """One training process, from its first act to its last."""

    job: str
    began: float
    first: int  # the step it goes on from
    steps: list[tuple[int, float]] = field(default_factory=list)  # step and when it was done
    saved: int = -1  # the last step that it saved
    ended: float | None = None  # None: killed


@dataclass(frozen=True, kw_only=True)
class Account:
    """What became of one training that took several lives."""

    lives: int
    finished: bool
    kept: int  # steps of the result, each counted once; of an unfinished one, those that are saved
    done: int  # steps that were done, each as often as it was
    repeated: int  # steps that were done again
    wall: float  # seconds from the first life's beginning to the last step
    pauses: Sequence[float]  # seconds from a life's last act to the next one's first step

    def goodput(self, *, step_seconds: float, allocated: float) -> float:
        return self.kept * step_seconds / allocated if allocated else 0.0


def lives(trace: Iterable[Mapping[str, Any]]) -> list[Life]:
    """In the order in which they began."""
    found: dict[str, Life] = {}
    for event in sorted(trace, key=lambda event: event["t"]):
        if event["what"] == "begin":
            found[event["life"]] = Life(job=event["job"], began=event["t"], first=event["step"])
        elif event["life"] in found:
            life = found[event["life"]]
            match event["what"]:
                case "step":
                    life.steps.append((event["step"], event["t"]))
                case "save":
                    life.saved = event["step"]
                case "end":
                    life.ended = event["t"]
    return sorted(found.values(), key=lambda life: life.began)


def account(trace: Iterable[Mapping[str, Any]], *, total: int) -> Account:
    all_lives = lives(trace)
    trained = [life for life in all_lives if life.steps]
    done = [step for life in trained for step, _ in life.steps]
    finished = total - 1 in done
    pauses = [later.steps[0][1] - earlier.ended for earlier, later in pairwise(trained) if earlier.ended is not None]
    kept = total if finished else max((life.saved for life in trained), default=-1) + 1
    return Account(
        lives=len(trained),
        finished=finished,
        kept=kept,
        done=len(done),
        repeated=len(done) - len(set(done)),
        wall=max(life.steps[-1][1] for life in trained) - trained[0].began if trained else 0.0,
        pauses=tuple(pauses),
    )


def lost(trace: Iterable[Mapping[str, Any]], *, total: int) -> int:
    """Steps that a life had done and the next one had to do again, or that nobody did again."""
    trained = [life for life in lives(trace) if life.steps]
    count = 0
    for index, life in enumerate(trained):
        last = life.steps[-1][0]
        if last == total - 1:
            continue
        goes_on = trained[index + 1].first if index + 1 < len(trained) else life.saved + 1
        count += max(0, last + 1 - goes_on)
    return count


def median(values: Sequence[float]) -> float:
    middle = sorted(values)[len(values) // 2 - (len(values) + 1) % 2 : len(values) // 2 + 1]
    return sum(middle) / len(middle) if middle else float("nan")
