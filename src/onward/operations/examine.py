"""What a run needs of a machine and its clusters, looked at before it is needed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from onward.errors import OnwardError, StorageError
from onward.model.quantity import format_bytes
from onward.operations.inspect import read_folder
from onward.operations.wiring import Desk

_ELSEWHERE = "set ONWARD_ROOT"
_LEAST_ROOM = 50 << 20  # bytes: a run's folder without any checkpoint takes a few

Finding = tuple[bool, str, str]  # fine?, what, words


def examine_machine(desk: Desk) -> Iterator[Finding]:
    yield sys.version_info >= (3, 11), "python", f"{sys.version.split()[0]} at {sys.executable}"
    yield examine_root(desk.root)
    local = Path(os.environ.get("SLURM_TMPDIR") or tempfile.gettempdir())
    free = format_bytes(shutil.disk_usage(local).free)
    yield os.access(local, os.W_OK), "local disk", f"{local}, {free} free here (a job may see another)"


def examine_folders(desk: Desk) -> Iterator[Finding]:
    """Each folder of an open run that cannot be read, with its reason; and each that says it is a run that lies elsewhere, too."""
    folders: dict[str, Path] = {}
    try:
        found = desk.runs()
    except OSError:  # the root itself, which is looked at before
        return
    for dir in found:
        if os.path.lexists(dir.done):  # over: nobody needs it read
            continue
        try:
            id = read_folder(dir).spec.id
        except StorageError as error:
            if not isinstance(error.__cause__, PermissionError):  # that one is somebody else's, who keeps it private
                yield False, "folder", error.message
            continue
        if (first := folders.setdefault(id, dir.path)) != dir.path:
            yield False, "folder", f"{dir.path} and {first} both say that they are run {id}; delete the one that is a copy"
    yield from ((False, "root", words) for words in desk.unread)


def examine_cluster(desk: Desk, name: str) -> Finding:
    try:
        return True, name, desk.scheduler(desk.settings.cluster(name)[0]).check()
    except OnwardError as error:
        return False, name, error.message


def examine_runs_folder(desk: Desk, name: str) -> tuple[bool, str, str, str]:
    """Of one cluster; its path comes last."""
    try:
        profile = desk.settings.cluster(name)[1]
        root = desk.settings.root(desk.env, profile)
    except OnwardError as error:
        return False, "root", error.message, ""
    own = name in desk.settings.clusters and not desk.env.get("ONWARD_ROOT")
    return *examine_root(root, f"set clusters.{name}.root to a folder that is yours" if own else _ELSEWHERE), str(root)


def examine_root(root: Path, advice: str = _ELSEWHERE) -> Finding:
    place = root
    while not os.path.exists(place):
        place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        return False, "root", f"{root} cannot be written; {advice}"
    free = shutil.disk_usage(place).free
    return free > _LEAST_ROOM, "root", f"{root}, {format_bytes(free)} free"
