"""Where a node gets its checkpoint from: a copy on its own disk, or the store itself. Every byte is verified either way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.copying import Moved
from onward.checkpoints.disk_space import free_bytes, is_in_memory
from onward.checkpoints.manifest import OWN, Manifest, check_sizes, read_manifest, verify
from onward.checkpoints.publishing.publish import restore
from onward.errors import StorageFull
from onward.model.quantity import format_bytes
from onward.sdk import contract

_NEW_ONES = 2  # checkpoints that the training must be able to save beside the copy it resumes from


@dataclass(frozen=True, kw_only=True)
class NodeDisk:
    free: int | None  # bytes; None: it does not say
    same_as_store: bool
    in_memory: bool


@dataclass(frozen=True, kw_only=True)
class NodeCheckpoint:
    """A verified checkpoint where the ranks of this node can read it. In the store itself nothing may be written to it."""

    manifest: Manifest
    folder: Path
    in_place: str = ""  # why it was not copied
    warning: str = ""  # for whoever looks at the run


def why_in_place(need: int, disk: NodeDisk) -> str:
    """Why a checkpoint of this size is read from the store; empty where it is copied to the node."""
    if disk.same_as_store:
        return "the node's disk is the storage itself"
    if disk.in_memory:
        return "the node's disk is in memory, so the copy would use the job's memory"
    wanted = need * (1 + _NEW_ONES)
    if disk.free is not None and disk.free < wanted:
        return f"the node's disk has {format_bytes(disk.free)} free, but a copy and {_NEW_ONES} new checkpoints take {format_bytes(wanted)}"
    return ""


def node_disk_of(local: Path, store: Path) -> NodeDisk:
    return NodeDisk(free=free_bytes(local), same_as_store=_same_device(local, store), in_memory=is_in_memory(local))


def bring_to_node(
    folder: Path,
    *,
    resume: Path,
    writes: Path,
    part: tuple[int, int] | None = None,
    moved: Moved | None = None,
    look: Callable[[Path, Path], NodeDisk] = node_disk_of,
    put_back: Callable[[Path], None] | None = None,
) -> NodeCheckpoint:
    """Make the published checkpoint in `folder` readable on this node: as a copy in `resume`, or where it is.

    Files that a training saved by itself are also put where it `writes`, since many look for them there: that is their one
    copy, and what such a training reads from is the store. `part` is this node's number among how many: where all ranks
    wrote the checkpoint, a node copies and verifies what its own ranks wrote, and finds the rest through links to the store.
    `put_back` puts files that the training keeps in its working folder back there, on the first node.
    Raises CheckpointDamaged.
    """
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    if manifest.made_by == OWN:
        if put_back:
            put_back(folder)
        return NodeCheckpoint(manifest=manifest, folder=folder, in_place="its files are in the training's working folder")
    disk = look(resume.parent, folder.parent)
    if manifest.made_by == "files":
        return _bring_files(folder, manifest, resume, writes, disk, moved)
    own = manifest.part(*part) if part and manifest.ranks else None
    need = sum(entry.size for name, entry in manifest.files.items() if own is None or name in own)
    why = why_in_place(need, disk)
    if not why:
        try:
            restore(folder, resume, only=own, moved=moved)
            return NodeCheckpoint(manifest=manifest, folder=resume)
        except StorageFull as error:
            why = str(error)
    verify(folder, only=own, moved=moved)
    return NodeCheckpoint(manifest=manifest, folder=_linked(folder, manifest, resume) if disk.same_as_store else folder, in_place=why)


def _bring_files(folder: Path, manifest: Manifest, resume: Path, writes: Path, disk: NodeDisk, moved: Moved | None) -> NodeCheckpoint:
    beside = writes / f"{contract.PARTIAL_PREFIX}restored"
    try:
        restore(folder, beside, moved=moved)
    except StorageFull as error:
        verify(folder, moved=moved)
        return NodeCheckpoint(
            manifest=manifest,
            folder=folder,
            in_place=str(error),
            warning=f"{error}; a training that looks for its files where it writes them will not find them: "
            "make it read from {checkpoints.read}, or ask for a node with a larger disk",
        )
    for entry in list(beside.iterdir()):
        target = writes / entry.name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        os.replace(entry, target)
    beside.rmdir()
    there = _linked(folder, manifest, resume) if disk.same_as_store else folder
    return NodeCheckpoint(manifest=manifest, folder=there, in_place="its files were copied to where the training writes")


def _linked(folder: Path, manifest: Manifest, resume: Path) -> Path:
    """The same files under names of the node's own, which stay when the store lets the checkpoint go."""
    shutil.rmtree(resume, ignore_errors=True)
    try:
        resume.mkdir(parents=True)
        for relative, entry in manifest.files.items():
            target = resume / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.link:
                target.symlink_to(entry.link)
            else:
                os.link(folder / relative, target)
    except OSError:  # no links here, or between these two folders
        shutil.rmtree(resume, ignore_errors=True)
        return folder
    return resume


def _same_device(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:
        return False
