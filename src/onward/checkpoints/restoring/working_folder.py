"""Put a training's own checkpoint back into its working folder, where that lacks it, has an older one, or one that is cut off."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from onward.checkpoints.copying import Moved
from onward.checkpoints.manifest import Manifest, check_sizes, read_manifest, verify
from onward.checkpoints.publishing.publish import restore
from onward.checkpoints.watching.file_endings import is_cut_off
from onward.checkpoints.watching.linked_paths import own_paths
from onward.sdk import contract

_ASIDE = ".incomplete"  # added to the name of a file that is cut off


def put_back(folder: Path, working: Path, patterns: Sequence[str], *, moved: Moved | None = None) -> list[str]:
    """The files that were put back from the published checkpoint in `folder`. Raises CheckpointDamaged.

    All of them or none: where the training has saved something newer and whole since, what is there stays.
    """
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    there = set(own_paths(working, patterns))
    newest = max((entry.written for entry in manifest.files.values()), default=0)
    newer = [name for name in there if (working / name).stat().st_mtime_ns > newest]
    torn = [name for name in {*newer, *manifest.files.keys() & there} if is_cut_off(working / name)]
    wanted = sorted(name for name, entry in manifest.files.items() if not _is(working / name, entry.size, entry.written))
    if newer and not torn:
        wanted = []
    verify(folder, only=manifest.files.keys() - set(wanted), moved=moved)
    if wanted:
        _copy(folder, manifest, working, wanted, moved)
    for name in torn:
        if name not in manifest.files:
            os.replace(working / name, working / f"{name}{_ASIDE}")
    return wanted


def _copy(folder: Path, manifest: Manifest, working: Path, names: Sequence[str], moved: Moved | None) -> None:
    beside = working / f"{contract.PARTIAL_PREFIX}restored"
    try:
        restore(folder, beside, only=names, moved=moved)
        for name in names:
            written = manifest.files[name].written
            os.utime(beside / name, ns=(written, written))  # so that it is known as what was published
            (working / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(beside / name, working / name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _is(path: Path, size: int, written: int) -> bool:
    try:
        seen = path.stat()
    except OSError:
        return False
    return (seen.st_size, seen.st_mtime_ns) == (size, written) and not is_cut_off(path)
