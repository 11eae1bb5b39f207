"""Which of the checkpoints that wait on a node is published next, and which need not be any more. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from onward.model.spec import CheckpointRule

MOST_WAITING = 3  # more than these mean that saves outrun the store

_KEPT_ON_NODE = 2  # whole ones, while the store takes nothing

Steps = Sequence[int | None]  # that wait, oldest first; None: the training named no step


def next_to_publish(waiting: Steps, rule: CheckpointRule, *, closed: bool) -> int:
    """The position of the one to publish now.

    The oldest, as long as the store keeps up, so that every one that is to be kept is published. The newest once the training has
    gone (`closed`: there may be time for one only), or when saves outrun the store (a node that dies takes what waits with it).
    """
    outrun = len(waiting) > MOST_WAITING and rule.best is None
    return len(waiting) - 1 if closed or outrun else 0


def may_skip(waiting: Steps, rule: CheckpointRule, *, closed: bool, newest: int, published: int) -> list[int]:
    """Positions of those that need not be published any more: always superseded by a newer one that is published.

    `newest` is the newest published step (-1: none), `published` how many this leg has published.
    """
    superseded = [at for at, step in enumerate(waiting) if step is not None and step < newest and not _always_kept(step, rule)]
    if closed:
        return superseded if published >= rule.keep else []
    return [at for at in superseded if at < len(waiting) - MOST_WAITING + 1]


def may_go_unpublished(committed: Sequence[int], rule: CheckpointRule) -> list[int]:
    """Steps that may go from the node while the store takes nothing, so that the node's disk does not fill. All are whole.

    A run goes on from the newest; the one before it is there in case the newest turns out damaged. What the rule keeps stays.
    """
    return [step for step in sorted(committed)[:-_KEPT_ON_NODE] if not _always_kept(step, rule)]


def _always_kept(step: int, rule: CheckpointRule) -> bool:
    """Whether it is kept, or may be, however many newer ones there are."""
    return rule.best is not None or bool(rule.keep_every and step % rule.keep_every == 0)
