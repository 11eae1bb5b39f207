"""Find checkpoints in a run's folder, and the newest that really verifies."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from onward.checkpoints.manifest import Manifest, check_sizes, read_manifest, verify
from onward.checkpoints.publishing.publish import put_back_replaced, restore
from onward.checkpoints.unpublished import published_names
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import Checkpoint, CheckpointName

T = TypeVar("T")
_PASSING_ERRORS = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO, errno.ENOTCONN, errno.EHOSTDOWN)
Wait = Callable[[], bool]  # pauses; False when it has waited enough


@dataclass(frozen=True, kw_only=True)
class VerifiedCheckpoint:
    manifest: Manifest
    fell_back: tuple[str, ...]  # newer ones that did not verify, and why


@dataclass(frozen=True, kw_only=True)
class Newest(Generic[T]):
    """The newest checkpoint that could be taken, as it was taken."""

    taken: T
    fell_back: tuple[str, ...]
    unread: OSError | None = None  # why a newer one could not be read, where that may pass: nobody knows whether it is damaged


def published_names_of(store: Path) -> list[CheckpointName]:
    """Published names, oldest first. Hidden and foreign entries are not ours to judge."""
    return published_names(store)


def published_checkpoints(store: Path) -> list[Checkpoint]:
    """Those whose manifest can be read and whose files have their sizes, oldest first."""
    found = []
    for name in published_names_of(store):
        try:
            found.append(_looked_at(store / str(name)).checkpoint())
        except CheckpointDamaged:
            continue
    return found


def take_newest(
    store: Path, take: Callable[[Path], T], *, expected: CheckpointName | None = None, wait: Wait | None = None
) -> Newest[T] | None:
    """The newest checkpoint that `take` does not find damaged; None if there is none at all.

    `expected` is the newest that was reported published. A network file system may show it late, so `wait` is called
    before anything older is taken.
    """
    put_back_replaced(store)
    while expected and expected not in published_names_of(store) and wait and wait():
        pass
    fell_back: list[str] = []
    unread: OSError | None = None
    seen = published_names_of(store)
    if expected and expected not in seen:
        fell_back.append(f"{expected}: was published but is missing")
    for name in reversed(seen):
        try:
            return Newest(taken=take(store / str(name)), fell_back=tuple(fell_back), unread=unread)
        except CheckpointDamaged as error:
            fell_back.append(str(error))
            unread = unread or _may_pass(error)
    return None


def _may_pass(error: CheckpointDamaged) -> OSError | None:
    """The storage's error behind it, if that is one of its moods and not of the files."""
    cause = error.__cause__ or error.__context__
    return cause if isinstance(cause, OSError) and cause.errno in _PASSING_ERRORS else None


def likely_newest(store: Path, *, expected: CheckpointName | None = None, wait: Wait | None = None) -> Manifest | None:
    """The newest whose files have their sizes: known at once, so that all nodes can begin with it."""
    found = take_newest(store, _looked_at, expected=expected, wait=wait)
    return found.taken if found else None


def restore_newest(
    store: Path, target: Path, *, expected: CheckpointName | None = None, wait: Wait | None = None
) -> VerifiedCheckpoint | None:
    """Copy the newest checkpoint that verifies to `target`; None if there is none at all."""
    found = take_newest(store, lambda folder: restore(folder, target), expected=expected, wait=wait)
    return VerifiedCheckpoint(manifest=found.taken, fell_back=found.fell_back) if found else None


def newest_in_place(store: Path) -> VerifiedCheckpoint | None:
    """The newest that verifies where it lies."""
    found = take_newest(store, verify)
    return VerifiedCheckpoint(manifest=found.taken, fell_back=found.fell_back) if found else None


def _looked_at(folder: Path) -> Manifest:
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    return manifest
