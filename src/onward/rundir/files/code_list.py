"""Which files of a run's `code/` are its code: listed at submit, so that everything else there is what the training wrote.

A file of the code that was written again since is the training's too. Times say so only in the folder that the list was made for: in a
copy of it, every file may have a new one.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from onward.rundir.files.no_links import read_beneath
from onward.rundir.layout import RunDir
from onward.sdk.atomic_files import write_whole


@dataclass(frozen=True, kw_only=True)
class CodeList:
    folder: int  # the inode of `code/`
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # by path: size, time of the last write in nanoseconds

    def is_code(self, path: str, seen: os.stat_result, *, folder: int) -> bool:
        """`folder`: the inode of `code/` now."""
        listed = self.files.get(path)
        return listed is not None and (folder != self.folder or listed == (seen.st_size, seen.st_mtime_ns))

    @cached_property
    def folders(self) -> frozenset[str]:
        return frozenset(str(parent) for path in self.files for parent in PurePosixPath(path).parents)


def record_code(dir: RunDir, *, mode: int) -> None:
    """`mode`: who may read the list."""
    files: dict[str, tuple[int, int]] = {}
    for at, _, names in os.walk(dir.code):
        for name in names:
            path = os.path.join(at, name)
            seen = os.lstat(path)
            if stat.S_ISREG(seen.st_mode):
                files[os.path.relpath(path, dir.code)] = (seen.st_size, seen.st_mtime_ns)
    listed = {"folder": os.stat(dir.code).st_ino, "files": files}
    write_whole(dir.code_list, json.dumps(listed), mode=mode)


def read_code_list(dir: RunDir) -> CodeList | None:
    """None where there is none: the code runs where it stands, is a pipeline's, or was frozen by an older version."""
    try:
        data = json.loads(read_beneath(dir.root, dir.code_list))
        return CodeList(folder=int(data["folder"]), files={str(path): (int(size), int(at)) for path, (size, at) in data["files"].items()})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
