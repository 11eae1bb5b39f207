"""Hand a checkpoint on: the same files under another name, so that they stay whatever their run keeps."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

from onward.checkpoints.manifest import MANIFEST, Manifest, check_sizes, read_manifest
from onward.sdk.atomic_files import same_file


def link_checkpoint(folder: Path, target: Path) -> Manifest:
    """By hard links, as checkpoints never change; copied where the disk is another. Twice is once; `target` is there when it is whole."""
    manifest = read_manifest(folder)
    if target.exists():
        return manifest
    check_sizes(folder, manifest)
    partial = target.with_name(f".{target.name}.{socket.gethostname()}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for name, entry in manifest.files.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            if entry.link:
                (partial / name).symlink_to(entry.link)
            else:
                same_file(folder / name, partial / name)
        same_file(folder / MANIFEST, partial / MANIFEST)
        try:
            partial.rename(target)
        except OSError:
            if not target.exists():  # else another was first, with the same files
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest
