"""What lies on a node's disk, committed and not published; and the one rule for when a committed checkpoint may go."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from onward.model.checkpoint import CheckpointName
from onward.sdk import contract
from onward.sdk.saving import committed, step_of


@dataclass(frozen=True, kw_only=True)
class UnpublishedCheckpoint:
    """A checkpoint that the training committed, or one rank's share of it."""

    name: CheckpointName
    folder: Path

    @property
    def bytes(self) -> int:
        """What is being carried away meanwhile does not count."""
        total = 0
        for above, _, names in os.walk(self.folder):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.path.getsize(os.path.join(above, name))
        return total


def may_be_deleted(name: CheckpointName, published: Iterable[CheckpointName]) -> bool:
    """Nothing committed is deleted unless it is published, or a newer one is. (One exception, while the store takes nothing:
    publishing/order.py, may_go_unpublished.)"""
    return any(other >= name for other in published)


def published_names(store: Path) -> list[CheckpointName]:
    """Oldest first. Hidden and foreign entries are not ours to judge. Raises OSError where the store cannot be read."""
    try:
        entries = os.listdir(store)
    except FileNotFoundError:
        return []
    return sorted(name for name in map(CheckpointName.parse, entries) if name)


def unpublished(checkpoints: Path, store: Path, *, leg: int) -> list[UnpublishedCheckpoint]:
    """What a leg committed into this folder of a node and must not be lost, oldest first.

    Where the store cannot be read, everything counts as unpublished.
    """
    marks = (checkpoints / contract.SHARES).glob(f"step-*/rank-*/{contract.COMMIT_FILE}")
    folders = [(step_of(folder), folder) for folder in committed(checkpoints)]
    folders += [(step_of(mark.parent.parent), mark.parent) for mark in marks]
    if not folders:
        return []
    try:
        published = published_names(store)
    except OSError:
        published = []
    found = [UnpublishedCheckpoint(name=CheckpointName(leg, step), folder=folder) for step, folder in sorted(folders)]
    return [one for one in found if not may_be_deleted(one.name, published)]
