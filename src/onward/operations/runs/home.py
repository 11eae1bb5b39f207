"""Whether a run lives in the folder that somebody named. A copy is refused; a folder that was moved becomes the run's home."""

from __future__ import annotations

import logging
import os
from functools import cached_property
from pathlib import Path

from onward.errors import Conflict, StorageError
from onward.operations.context import OperationsContext
from onward.operations.runs.find import labels
from onward.rundir.home import Residence, copied_folder, home_elsewhere, record_home, residence_of
from onward.rundir.layout import RunDir

log = logging.getLogger(__name__)


class HomeCheck:
    """For one verb, or one pass over many runs: all folders are searched at most once."""

    def __init__(self, context: OperationsContext) -> None:
        self._context = context

    def ensure(self, dir: RunDir) -> None:
        """Return if the run lives in this folder, else raise Conflict. A folder that was moved is recorded as the new home."""
        found = residence_of(dir)
        match found.kind:
            case Residence.HOME:
                return
            case Residence.COPY:
                raise copied_folder(dir, found.home)
            case Residence.UNKNOWN:
                raise Conflict(
                    f"the home of the run in {dir.path} is {found.home}, which cannot be read now: this folder may be a copy",
                    hint=f"if it was moved, `onward adopt {dir.path}`; if it is a copy, leave it, or `onward clone {dir.path}`",
                )
            case Residence.LOST_HOME:
                self._refuse_where_it_may_live_elsewhere(dir, found.home)
                _settle(dir)
            case Residence.MOVED:
                _settle(dir)

    def adopt(self, dir: RunDir) -> None:
        """A person says that this folder is the run. Not as long as another one of theirs is."""
        found = residence_of(dir)
        if found.kind is Residence.HOME:
            raise Conflict(f"{dir.path} is already the run's home", hint="nothing needs to be done")
        if found.kind is Residence.COPY and _same_owner(dir.path, found.home):
            raise copied_folder(dir, found.home)
        if found.kind is Residence.LOST_HOME and (homes := [other for other in self._others(dir) if _is_home(other)]):
            raise copied_folder(dir, homes[0].path)
        try:
            record_home(dir)
        except OSError as error:
            raise StorageError(
                f"{dir.home} cannot be written: {error}", hint="is there room, and does the folder belong to you?"
            ) from error

    def _refuse_where_it_may_live_elsewhere(self, dir: RunDir, home: Path) -> None:
        others = self._others(dir)
        if homes := [other for other in others if _is_home(other)]:
            raise copied_folder(dir, homes[0].path)
        if others:
            raise Conflict(
                f"the run in {dir.path} has left {home}, and is also in {', '.join(str(other.path) for other in others)}",
                hint="`onward adopt FOLDER` with the one that is the run",
            )

    def _others(self, dir: RunDir) -> list[RunDir]:
        """Further folders with this run's id, that are no copies of a home that is there."""
        found = self._by_id.get(labels(dir)[0], ())
        return [other for other in found if not _same_folder(other, dir) and home_elsewhere(other) is None]

    @cached_property
    def _by_id(self) -> dict[str, list[RunDir]]:
        found: dict[str, list[RunDir]] = {}
        for dir in self._context.runs():
            if id := labels(dir)[0]:
                found.setdefault(id, []).append(dir)
        return found


def ensure_home(context: OperationsContext, dir: RunDir) -> None:
    HomeCheck(context).ensure(dir)


def _settle(dir: RunDir) -> None:
    try:
        record_home(dir)
    except OSError as error:  # the next act does it
        log.warning("cannot record that the run has moved to %s: %s", dir.path, error)


def _same_folder(one: RunDir, other: RunDir) -> bool:
    try:
        return os.path.samestat(os.stat(one.path), os.stat(other.path))
    except OSError:
        return one.path == other.path


def _same_owner(one: Path, other: Path) -> bool:
    try:
        return os.stat(one).st_uid == os.stat(other).st_uid
    except OSError:
        return False


def _is_home(dir: RunDir) -> bool:
    try:
        return residence_of(dir).kind in (Residence.HOME, Residence.MOVED)
    except OSError:
        return False
