"""Carry frozen code to a host: by rsync, or as a tar stream through the same ssh where rsync is missing on either side."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from onward.errors import HostUnreachable, StorageError, StorageFull
from onward.operations.ssh.call import Data, SshCaller
from onward.operations.ssh.command_line import rsync_shell
from onward.operations.ssh.errors import SshFailure, explain

_PATIENCE = 1800.0
_UNUSABLE = (1, 2, 4, 5, 12, 14, 126, 127)  # rsync's codes, and a shell's: none there, or none that ours can talk to


def drop_links(code: Path) -> list[str]:
    """Frozen code links to data, where that stands on this machine; on another it is not. What was linked, and is no more."""
    left = []
    for path in _links(code):
        if os.path.isabs(os.readlink(path)):
            path.unlink()
            left.append(str(path.relative_to(code)))
    return sorted(left)


def carry_code(caller: SshCaller, code: Path, folder: str, *, request: Data) -> str:
    """Put what lies in `code` into `folder` there. `request` asks the agent to unpack a tar stream into it. Says how it went."""
    rsync = shutil.which("rsync")
    if rsync and _by_rsync(rsync, caller, code, folder):
        return ""
    _by_tar(caller, code, request)
    why = f"rsync is missing on {caller.host}, or cannot be used" if rsync else "rsync is missing here"
    return f"{why}: the code was copied as a tar stream"


def _by_rsync(rsync: str, caller: SshCaller, code: Path, folder: str) -> bool:
    """False where it cannot be used."""
    command = [rsync, "-rlpt", "-s", "-z", "-e", rsync_shell(caller.line), f"{code}/", f"{caller.host}:{folder}/"]
    given: Data = {"stdin": subprocess.DEVNULL, "start_new_session": True, "timeout": _PATIENCE}
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **given)
    except subprocess.TimeoutExpired as error:
        raise HostUnreachable(
            f"copying the code to {caller.host} took more than {_PATIENCE:.0f} s", hint="does the folder contain only code?"
        ) from error
    if done.returncode == 0:
        return True
    if re.search("No space left|quota exceeded", done.stderr):
        hint = "make room there, or set the profile's `root` to another disk"
        raise StorageFull(f"the code does not fit into {folder} on {caller.host}", hint=hint)
    if done.returncode == 255:
        raise explain(SshFailure(host=caller.host, python="rsync", code=255, words=done.stderr))
    if done.returncode in _UNUSABLE:
        return False
    raise StorageError(f"cannot copy the code to {caller.host}: {done.stderr.strip()}", hint=f"do you have write access to {folder} there?")


def _by_tar(caller: SshCaller, code: Path, request: Data) -> None:
    names = sorted(os.listdir(code))

    def body(stream: IO[bytes]) -> None:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            archive.add(code, arcname=".", recursive=False)  # for its mode
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
