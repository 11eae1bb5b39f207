"""Checkpoint: an immutable, complete, verified directory for one step; and the rule which of them are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onward.model.spec import CheckpointRule

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


def to_delete(checkpoints: Iterable[Checkpoint], rule: CheckpointRule) -> list[Checkpoint]:
    """What the rule lets go. Never the last two, never the best, never a `keep-every` step."""
    ordered = sorted(checkpoints, key=lambda c: c.name)
    kept = {c.name for c in ordered[-max(rule.keep, 2) :]}
    if rule.keep_every:
        kept |= {c.name for c in ordered if c.name.step % rule.keep_every == 0}
    if rule.best:
        best = best_of(ordered, rule.best.metric, rule.best.mode)
        if best:
            kept.add(best.name)
    return [c for c in ordered if c.name not in kept]


def why_kept(checkpoints: Iterable[Checkpoint], rule: CheckpointRule) -> dict[CheckpointName, str]:
    """Why each is still there, in words; those that the rule lets go, until the next one is published."""
    ordered = sorted(checkpoints, key=lambda c: c.name)
    best = best_of(ordered, rule.best.metric, rule.best.mode) if rule.best else None
    last = max(rule.keep, 2)
    data = {}
    for back, checkpoint in enumerate(reversed(ordered)):
        words = ["the newest" if back == 0 else f"one of the last {last}"] if back < last else []
        if rule.best and best and best.name == checkpoint.name:
            words.append(f"best by {rule.best.metric}")
        if rule.keep_every and checkpoint.name.step % rule.keep_every == 0:
            words.append(f"one of every {rule.keep_every} steps")
        data[checkpoint.name] = ", ".join(words) or "deleted when the next one is published"
    return data


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
