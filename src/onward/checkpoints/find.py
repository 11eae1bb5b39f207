"""Find checkpoints in a run's folder, and the newest that really verifies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.manifest import Manifest, check_sizes, read_manifest, verify
from onward.checkpoints.publish import restore
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import Checkpoint, CheckpointName


@dataclass(frozen=True, kw_only=True)
class Found:
    manifest: Manifest
    fell_back: tuple[str, ...]  # newer ones that did not verify, and why


def names(store: Path) -> list[CheckpointName]:
    """Published names, oldest first. Hidden and foreign entries are not ours to judge."""
    try:
        entries = os.listdir(store)
    except FileNotFoundError:
        return []
    return sorted(name for name in map(CheckpointName.parse, entries) if name)


def checkpoints(store: Path) -> list[Checkpoint]:
    """Those whose manifest can be read and whose files have their sizes, oldest first."""
    found = []
    for name in names(store):
        try:
            manifest = read_manifest(store / str(name))
            check_sizes(store / str(name), manifest)
        except CheckpointDamaged:
            continue
        found.append(manifest.checkpoint())
    return found


def restore_newest(
    store: Path, target: Path, *, expected: CheckpointName | None = None, wait: Callable[[], bool] | None = None
) -> Found | None:
    """Copy the newest checkpoint that verifies to `target`; None if there is none at all.

    `expected` is the newest that was reported published. A network file system may show it late, so `wait` is called
    (it pauses, and says False when it has waited enough) before anything older is taken.
    """
    while expected and expected not in names(store) and wait and wait():
        pass
    fell_back: list[str] = []
    seen = names(store)
    if expected and expected not in seen:
        fell_back.append(f"{expected}: was reported published and is not there")
    for name in reversed(seen):
        try:
            return Found(manifest=restore(store / str(name), target), fell_back=tuple(fell_back))
        except CheckpointDamaged as error:
            fell_back.append(str(error))
    return None


def newest_in_place(store: Path) -> Found | None:
    """The newest that verifies where it lies: for a node whose own disk has no room for a copy."""
    fell_back: list[str] = []
    for name in reversed(names(store)):
        try:
            return Found(manifest=verify(store / str(name)), fell_back=tuple(fell_back))
        except CheckpointDamaged as error:
            fell_back.append(str(error))
    return None
