"""Folders that legs of any run of this user left on this node, because they were killed: found, and removed where nothing is lost.

What a killed leg logged is carried to its run first. A folder with a checkpoint that is neither published nor superseded
stays: the next leg of its run on this node publishes it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.unpublished import unpublished
from onward.model.quantity import format_bytes
from onward.rundir.layout import LegLocal, RunDir, dated_under, leg_of
from onward.rundir.mirror import carry, carry_untold
from onward.rundir.run_end import is_finished
from onward.supervisor.disk.lock import locked_folder
from onward.supervisor.disk.owner import OWNER, owner_of, surely_gone
from onward.supervisor.processes.survivors import is_alive
from onward.supervisor.relay.artifacts import carry_artifacts, has_pending_artifacts

log = logging.getLogger(__name__)

_SYSTEM_DISKS = ("/var/tmp", "/tmp")
_MOST_SECONDS = 300.0  # for which a job looks and removes beside its training
_NOBODYS = 14 * 86400.0  # seconds in which nothing happened to a folder that does not say whose it is


@dataclass(frozen=True, kw_only=True)
class LeftoverFolder:
    path: Path
    run: str  # the run's folder by its name, or its id
    leg: int
    at: float  # when something last happened to it
    keep: str = ""  # why it must stay; empty where it may go


def node_folders(named: Iterable[str] = ()) -> list[Path]:
    """Where this user's legs may have had their folders on this machine; `named` by profiles."""
    offered = [*(os.path.expandvars(one) for one in named), os.environ.get("SLURM_TMPDIR", ""), tempfile.gettempdir(), *_SYSTEM_DISKS]
    found = (Path(base) / f"onward-{os.getuid()}" for base in dict.fromkeys(offered) if base and "$" not in base)
    return [folder for folder in found if folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid()]


def bring_untold(run: RunDir, id: str, legs: Iterable[int], *, named: Iterable[str] = ()) -> bool:
    """What these legs of a run left on this node of their end, with what else they logged. Returns whether there was anything."""
    brought = False
    for folder in node_folders(named):
        for leg in legs:
            local = LegLocal(folder / id / f"leg-{leg:04d}")
            if carry_untold(local, run, leg):
                brought = True
                with contextlib.suppress(OSError):  # what cannot be carried stays there, and whoever sweeps the node tries again
                    carry(local, run)
    return brought


def leftover_folders(disk: Path, *, now: float) -> Iterator[LeftoverFolder]:
    """Those whose process has gone, each with whether it may go. Folders in use are not named."""
    for folder in sorted(disk.glob("*/leg-*")):
        leg = leg_of(folder.name)
        if leg is None or folder.is_symlink() or not folder.is_dir():
            continue
        at = folder.stat().st_mtime
        mark = owner_of(folder)
        if mark is None:
            if now - at > _NOBODYS:
                held = any(folder.glob("checkpoints/*"))
                why = "it does not say whose it is, and contains files of a training" if held else ""
                yield LeftoverFolder(path=folder, run=folder.parent.name, leg=leg, at=at, keep=why)
        elif surely_gone(mark) and not is_alive(folder.parent.name, leg):
            run = Path(str(mark.get("run", "")))
            yield LeftoverFolder(
                path=folder, run=run.name or folder.parent.name, leg=leg, at=at, keep=_why_kept(LegLocal(folder), RunDir(run), leg)
            )


def remove_leftover(folder: Path) -> None:
    """Take it away, with what it logged carried to its run. Raises OSError where that cannot be done: then it stays."""
    with locked_folder(folder) as alone:
        if not alone:
            raise OSError(errno.EBUSY, "its publisher still uses it")
        _remove(folder)


def _remove(folder: Path) -> None:
    local, mark = LegLocal(folder), owner_of(folder)
    run = RunDir(Path(str(mark["run"]))) if mark and mark.get("run") else None
    if run and run.is_run():
        carry_untold(local, run, leg_of(folder.name) or 1)
        carry(local, run)
        carry_artifacts(local, run)
        if has_pending_artifacts(local):
            raise OSError(errno.EBUSY, "some of its artifacts could not be stored in the run's folder")
    shutil.rmtree(folder)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()  # unless another leg of that run is on this node


def remove_leftovers_in_background(mine: LegLocal) -> None:
    """In the background of a job, for other runs than its own: what may go goes. Never in the training's way."""
    threading.Thread(target=_sweep, args=(mine,), name="sweep", daemon=True).start()


def _sweep(mine: LegLocal) -> None:
    until = time.monotonic() + _MOST_SECONDS
    try:
        for left in leftover_folders(mine.path.parent.parent, now=time.time()):
            if time.monotonic() > until:
                return
            if left.keep or left.path.parent == mine.path.parent:
                continue
            log.info("removing %s, left by leg %d of %s", left.path, left.leg, left.run)
            try:
                remove_leftover(left.path)
            except OSError as error:
                log.warning("cannot remove %s: %s", left.path, error)
    except OSError as error:
        log.warning("cannot list what killed legs left on this node: %s", error)


def _why_kept(local: LegLocal, run: RunDir, leg: int) -> str:
    if not (local.path / OWNER).exists():
        return "it is being removed"
    if not run.is_run():
        if not run.path.name:
            return "it does not say which run it belongs to"
        others = dated_under(run.path.parent)  # none: the disk with the runs may not be mounted here
        return "" if others else f"{run.path} cannot be read on this machine"
    if is_finished(run):
        return ""
    left = unpublished(local.checkpoints, run.checkpoints, leg=leg)
    if not left:
        return ""
    size = format_bytes(sum(one.bytes for one in left if one.name == left[-1].name))
    newest = left[-1]
    how = f"the next leg of that run on this node publishes it, or copy {newest.folder} yourself"
    return f"it contains {newest.name} of {run.path.name} ({size}), which is not published; {how}"
