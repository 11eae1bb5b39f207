"""Which folder a run lies in, and whose it is: settled when the run is first seen there.

A runs folder is shared. Anybody who may submit can write any run's id into a `spec.json` of their own, so an id alone proves nothing:
a run stays with its folder. If the folder is moved, its owner must be the same.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from sqlalchemy import Connection, select

from onward.errors import Conflict
from onward.rundir.files.no_links import stat_beneath
from onward.rundir.layout import RunDir
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.legs import upsert

_runs, _owners = schema.runs, schema.owners


def owner_of(dir: RunDir) -> int:
    """The user id of who owns the folder."""
    return stat_beneath(dir.root, dir.path).st_uid


def check_owner(connection: Connection, dir: RunDir, run_id: str, owner: int) -> None:
    """Raises Conflict where the run belongs to another folder, or to somebody else."""
    c = _runs.c
    columns = select(c.folder, c.source, c.user, _owners.c.uid.label("owner"))
    held = connection.execute(columns.join_from(_runs, _owners, isouter=True).where(c.run_id == run_id)).first()
    if held is None:
        return
    if held.folder is None:
        if held.source != "onward" or held.user != user_name(owner):
            raise Conflict(
                f"{dir.path}, of {user_name(owner)}, claims to be run {run_id}, but that run belongs to {held.user or 'someone else'} and "
                "was sent to the server by other means",
                hint="delete the folder, or give its run a different id",
            )
        return
    elsewhere = held.folder != str(dir.path) and not _same(Path(held.folder), dir.path)
    if elsewhere and RunDir(Path(held.folder)).is_run():
        raise Conflict(f"{dir.path} claims to be run {run_id}, but that run is in {held.folder}", hint="delete the copy")
    whose = held.user if held.owner is None else user_name(held.owner)  # an older version stored no owner
    if whose != user_name(owner) and (elsewhere or held.owner is not None):
        raise Conflict(
            f"{dir.path}, of {user_name(owner)}, claims to be run {run_id}, but that run was in {held.folder} and belongs to {whose}",
            hint="only the owner may move a run's folder",
        )


def record_owner(batch: Batch, run: int, owner: int) -> None:
    upsert(batch, _owners, [{"run": run, "uid": owner}], keys=("run",), change=("uid",))


def user_name(owner: int) -> str:
    try:
        return pwd.getpwuid(owner).pw_name
    except (KeyError, OSError):
        return str(owner)


def _same(one: Path, other: Path) -> bool:
    """One folder by two names, as where a root is reached in two ways."""
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False
