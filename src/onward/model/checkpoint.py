"""Checkpoint: an immutable, complete, verified directory for one step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_NAME = re.compile(r"^leg-(\d{4,})\.step-(\d{8,})$")


@dataclass(frozen=True, order=True)
class CheckpointName:
    """Leg first: a late writer of an older leg can only add an older name, never overwrite a newer one."""

    leg: int
    step: int

    def __str__(self) -> str:
        return f"leg-{self.leg:04d}.step-{self.step:08d}"

    @classmethod
    def parse(cls, text: str) -> CheckpointName | None:
        match = _NAME.match(text)
        return cls(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    name: CheckpointName
    bytes: int
    created: float
    metrics: Mapping[str, float] = field(default_factory=dict)  # last logged values when it was published


def best_of(checkpoints: Iterable[Checkpoint], metric: str, mode: str) -> Checkpoint | None:
    """The checkpoint with the best value; the earlier one wins a tie. NaN is never best."""
    best: Checkpoint | None = None
    for checkpoint in sorted(checkpoints, key=lambda c: c.name):
        value = checkpoint.metrics.get(metric)
        if value is None or value != value:
            continue
        if best is None or (value > best.metrics[metric] if mode == "max" else value < best.metrics[metric]):
            best = checkpoint
    return best
