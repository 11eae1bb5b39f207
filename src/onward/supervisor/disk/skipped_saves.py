"""Checkpoints that the training could not save for want of room on the node's disk: told to whoever looks at the run."""

from __future__ import annotations

from collections.abc import Sequence

from onward.model.quantity import format_bytes

_MOST_TOLD = 3  # in a leg


class SkippedSaves:
    def __init__(self) -> None:
        self._seen = 0

    def new(self, skipped: Sequence[str], *, free: int | None, size: int | None) -> list[str]:
        """What to warn of. `skipped`: all reasons the training gave so far; `size` of the newest checkpoint, where one is known."""
        fresh = skipped[self._seen : _MOST_TOLD]
        first, self._seen = self._seen, len(skipped)
        return [_words(reason, free, size, last=first + index + 1 == _MOST_TOLD) for index, reason in enumerate(fresh)]


def _words(reason: str, free: int | None, size: int | None, *, last: bool) -> str:
    room = "" if free is None else f", {format_bytes(free)} are free there"
    needs = "" if size is None else f", and a checkpoint takes {format_bytes(size)}"
    more = "; later ones are only in the training's log" if last else ""
    return (
        f"skipped a checkpoint, because the node's disk has no room for it: {reason}{room}{needs}; name a larger disk with local-disk{more}"
    )
