"""Code that comes from another machine: it is laid beside the runs, whole, before the run that it belongs to is made.

`<root>/.arriving/<run id>/` holds it on its way. What stays there after a broken connection is swept away a day later.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from onward.errors import InvalidInput, StorageError, SubmitUnclear
from onward.operations.submit.code_snapshot import CodeSnapshot
from onward.rundir.claim import take_file

_ID = re.compile(r"[0-9a-z]{8}\Z")
_OLD = 86_400.0  # seconds
_PATIENCE = 240.0  # seconds for another asking of the same submit; whoever asked waits a minute longer


@dataclass(frozen=True, kw_only=True)
class ArrivedCode:
    """Code that was frozen elsewhere and lies here now, and the id that its run was given there."""

    id: str
    code: Path
    frozen: CodeSnapshot

    def move(self, target: Path) -> CodeSnapshot:
        """Into its run's folder, which is on the same file system."""
        target.rmdir()
        os.rename(self.code, target)
        return self.frozen


def arrival_folder(root: Path, id: str) -> Path:
    """Where the code of this run waits."""
    if not _ID.match(id):
        raise InvalidInput(f"{id!r} is not a valid run id")
    return root / ".arriving" / id


def prepare(root: Path, id: str) -> Path:
    room = arrival_folder(root, id)
    try:
        sweep_arrivals(room.parent)
        room.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot store runs in {root}: {error.strerror}",
            hint="is there room, and do you have write access? The profile's `root` says where",
        ) from error
    return room


@contextmanager
def submit_lock(root: Path, id: str, *, patience: float = _PATIENCE) -> Iterator[None]:
    """Of two askings of the same submit, the second waits for the first: a connection that breaks does not end what it began."""
    mark = arrival_folder(root, id).with_name(f"{id}.asked")
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "at": time.time()}
    give_up = time.monotonic() + patience
    mark.parent.mkdir(parents=True, exist_ok=True)  # without a frozen copy, no code has come before
    while not take_file(mark, json.dumps(owner)):
        if time.monotonic() > give_up:
            raise SubmitUnclear(
                f"it is unknown whether the run {id} was queued: an earlier asking of this submit has not ended ({_holder(mark)})",
                hint=f"run onward show {id}; if there is no such run and no such process, remove {mark} or submit again",
            )
        _pause()
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def _holder(mark: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        held = json.loads(mark.read_bytes())
        return f"process {held['pid']} on {held['host']}"
    return "unknown which"


def _pause() -> None:
    time.sleep(0.2)


def unpack_code(room: Path, stream: IO[bytes], *, files: int) -> None:
    """A tar stream, where rsync is missing. Cut short, it is no code."""
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            how = {"filter": _as_sent} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(room, **how)  # type: ignore[arg-type]
    except tarfile.TarError as error:
        raise StorageError(f"the code arrived incomplete: {error}", hint="submit again") from error
    found = sum(1 for folder, folders, names in os.walk(room) for name in (*folders, *names) if _is_file(folder, name))
    if found != files:
        raise StorageError(f"the code arrived incomplete: {found} of {files} files", hint="submit again")


def _as_sent(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """Safe, and folders with the mode they had: Python's own filter would open them to all."""
    safe = tarfile.data_filter(member, path)
    return safe.replace(mode=member.mode & 0o777 | 0o700, deep=False) if member.isdir() else safe


def _is_file(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    return os.path.islink(path) or not os.path.isdir(path)


def discard_arrival(root: Path, id: str) -> None:
    shutil.rmtree(arrival_folder(root, id), ignore_errors=True)


def sweep_arrivals(folder: Path) -> None:
    for room in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # another submit sweeps too
            if time.time() - room.stat().st_mtime > _OLD:
                room.unlink() if room.is_file() else shutil.rmtree(room, ignore_errors=True)
