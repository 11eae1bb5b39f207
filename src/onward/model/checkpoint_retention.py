"""Which checkpoints are kept, and why; the others are deleted."""

from __future__ import annotations

from collections.abc import Iterable

from onward.model.checkpoint import Checkpoint, CheckpointName, best_of
from onward.model.spec import CheckpointRule


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
