"""Carry frozen code to a host: by rsync, or as a tar stream through the same ssh where rsync is missing on either side."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from onward.errors import StorageFull
from onward.operations.remote_call import Caller, Data
from onward.operations.remote_errors import Failure, explain
from onward.operations.remote_line import rsync_shell

_PATIENCE = 1800.0
_NEVER_THERE = (1, 2, 4, 5, 12, 14, 126, 127)  # rsync's codes, and a shell's, for no rsync there, or none that ours can talk to


def leave_links_behind(code: Path) -> list[str]:
    """Frozen code links to data, where that stands on this machine; on another it is not. What was linked, and is no more."""
    left = []
    for path in _links(code):
        if os.path.isabs(os.readlink(path)):
            path.unlink()
            left.append(str(path.relative_to(code)))
    return sorted(left)


def carry(caller: Caller, code: Path, folder: str, *, request: Data) -> str:
    """Put what lies in `code` into `folder` there. `request` asks the agent to unpack a tar stream into it. Says how it went."""
    rsync = shutil.which("rsync")
    if rsync is None:
        why = "rsync is missing here"
    else:
        done = subprocess.run(
            [rsync, "-rlpt", "-s", "-z", "-e", rsync_shell(caller.line), f"{code}/", f"{caller.host}:{folder}/"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
            start_new_session=True,
            check=False,
        )
        if done.returncode == 0:
            return ""
        if "No space left" in done.stderr or "quota exceeded" in done.stderr:
            raise StorageFull(f"the code does not fit into {folder} on {caller.host}", hint="make room there, or set the profile's `root`")
        if done.returncode not in _NEVER_THERE or "exceeded" in done.stderr:
            raise explain(Failure(host=caller.host, python="rsync", code=done.returncode, words=done.stderr))
        why = f"rsync is missing on {caller.host}, or cannot be used"
    _by_tar(caller, code, request)
    return f"{why}: the code was carried as a tar stream"


def _by_tar(caller: Caller, code: Path, request: Data) -> None:
    names = sorted(os.listdir(code))

    def body(stream: IO[bytes]) -> None:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for name in names:
                archive.add(code / name, arcname=name)

    files = sum(1 for _ in _files(code))
    caller.call({**request, "with": {**request["with"], "files": files}}, within=_PATIENCE, body=body)


def _files(code: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(code):
        for name in (*folders, *names):
            path = Path(folder, name)
            if path.is_symlink() or not path.is_dir():
                yield path


def _links(code: Path) -> Iterator[Path]:
    yield from [path for path in _files(code) if path.is_symlink()]
