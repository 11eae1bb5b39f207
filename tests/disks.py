"""Disks that are small or full: a real one where this user may mount it, and refusals like a disk's everywhere."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onward.checkpoints import disk_space


@contextmanager
def small_disk(folder: Path, *, kilobytes: int, read_only: bool = False) -> Iterator[Path]:
    """A memory disk of this size, or the test is skipped where nobody may mount one."""
    folder.mkdir(parents=True)
    options = f"size={kilobytes}k" + (",ro" if read_only else "")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def refuse_room(patch: pytest.MonkeyPatch, number: int = errno.ENOSPC) -> None:
    """From here on no file is given any room."""

    def refuse(*_arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    patch.setattr(os, "posix_fallocate", refuse)
    patch.setattr(disk_space, "fallocate", refuse)
