"""Whether the training ever looked whether it is asked to stop. One that did not could not obey: its exit code is its own word.

The path that it is given to the stop file leads through a symbolic link, and Linux notes when a link was last followed. Where that
cannot be relied on (`noatime`, most network file systems), nothing is known. Whatever else follows the link counts as a look,
which costs a leg and no result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from onward.rundir.layout import LegLocal, RunDir

_NEVER = 1  # nanoseconds: before anything was written, so that also `relatime` notes the next look
_CLOCK_WORDS = (b"ONWARD_DEADLINE", b"SLURM_JOB_END_TIME")
_MOST_FILES = 500
_LARGEST = 1 << 20  # bytes


class StopFileLooks:
    def __init__(self, local: LegLocal) -> None:
        """Made when everything is ready but the training itself."""
        self._link, self._told = local.stop_link, local.told_stop_file
        try:
            self._exists_through_link()
            self._forget()
            self._exists_through_link()  # what was found out before must not hide this look: a client's cache would
            self.noted = self._changed()
            self._forget()
        except OSError:
            self.noted = False

    def never(self) -> bool:
        """The training surely never looked, by itself or through a library."""
        try:
            return self.noted and not self._changed()
        except OSError:
            return False

    def _exists_through_link(self) -> None:
        self._told.exists()

    def _forget(self) -> None:
        os.utime(self._link, ns=(_NEVER, os.lstat(self._link).st_mtime_ns), follow_symlinks=False)

    def _changed(self) -> bool:
        return os.lstat(self._link).st_atime_ns != _NEVER


def may_go_by_the_clock(dir: RunDir) -> bool:
    """Its code names the variables that say when the job ends: it may save and exit 0 before that, without being asked.

    Also where the code is too large to be searched in seconds.
    """
    for count, path in enumerate(chain([dir.spec, dir.batch_script], _files(dir.code))):
        if count >= _MOST_FILES:
            return True
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST and any(word in path.read_bytes() for word in _CLOCK_WORDS):
                return True
        except OSError:
            return True
    return False


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        yield from (Path(place, name) for name in names)
