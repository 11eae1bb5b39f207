"""Clean: what can go without anybody missing it, how much room that is, and its removal.

Only what can be made anew: work folders of runs and pipelines that are over, and environments that nothing open uses. Results,
checkpoints, logs and journals are never touched; what cannot be read counts as open. On a node: folders that killed legs left on
its own disk, unless one holds a checkpoint that is neither published nor superseded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from onward.errors import OnwardError
from onward.operations.context import OperationsContext
from onward.pipelines.advance import read_plan
from onward.pipelines.build import Environments
from onward.rundir.layout import RunDir, half_made_under, runs_under
from onward.rundir.pipeline.layout import PipelineDir, pipelines_under
from onward.rundir.root.layout import RootDir
from onward.rundir.root.shared_files import unused_files
from onward.rundir.run_end import end_of, is_finished
from onward.supervisor.disk.leftovers import leftover_folders, node_folders, remove_leftover

_HALF_MADE = 24 * 3600.0  # seconds in which nothing happened to a build: nobody is at it any more
_JUST_NOW = 3600.0  # seconds: a pipeline in the making may have found an environment, and not said so yet
_KEY = re.compile(rb"/\.environments/([0-9a-f]{20})\b")


class RemovableKind(StrEnum):
    WORKDIR = "workdir"
    ENVIRONMENT = "environment"
    HALF_MADE = "half-made"  # an environment whose build was ended
    SUPERVISOR = "supervisor"  # the archive of a version that no run has any more
    LEG = "leg"  # a leg's folder on this node's own disk, whose process has gone


@dataclass(frozen=True, kw_only=True)
class Removable:
    kind: RemovableKind
    path: Path
    name: str  # for people
    bytes: int
    at: float  # since when nothing uses it


@dataclass(frozen=True, kw_only=True)
class KeptFolder:
    path: Path
    why: str


@dataclass(kw_only=True)
class FolderScan:
    items: list[Removable] = field(default_factory=list)
    kept: list[KeptFolder] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.items)


def scan_roots(context: OperationsContext, *, older: float = 0.0) -> FolderScan:
    """What can go that nothing has used for `older` seconds. Nothing is changed."""
    found = FolderScan()
    for root in context.roots:
        if root.is_dir():
            _Root(root, found, now=context.clock.now(), older=older).look()
    return found


def remove_scanned(context: OperationsContext, found: FolderScan, *, older: float = 0.0) -> tuple[list[Removable], list[str]]:
    """Remove what was found, and still can go. What is gone, and what went wrong."""
    on_node = any(item.kind is RemovableKind.LEG for item in found.items)
    still = {item.path for item in (scan_node if on_node else scan_roots)(context, older=older).items}
    gone, problems = [], []
    for item in found.items:
        if item.path not in still:
            problems.append(f"{item.path}: it is in use now, so it stays")
            continue
        try:
            _remove(item)
            gone.append(item)
        except OSError as error:
            problems.append(f"{item.path}: {error.strerror or error}")
    return gone, problems


def scan_node(context: OperationsContext, *, older: float = 0.0) -> FolderScan:
    """What killed legs of any run left on this very machine's disks. Nothing is changed."""
    found = FolderScan()
    now = context.clock.now()
    for folder in node_folders(profile.local_disk for profile in context.settings.clusters.values() if profile.local_disk):
        for left in leftover_folders(folder, now=now):
            if left.keep:
                found.kept.append(KeptFolder(path=left.path, why=left.keep))
            elif not older or now - left.at >= older:
                name = f"{left.run}, leg {left.leg}"
                found.items.append(Removable(kind=RemovableKind.LEG, path=left.path, name=name, bytes=freed_bytes(left.path), at=left.at))
    return found


def freed_bytes(folder: Path) -> int:
    """Bytes on the disk that removing a folder or file frees: what has another name elsewhere, as package caches do, frees nothing."""
    seen: dict[tuple[int, int], int] = {}
    total = 0 if folder.is_dir() else folder.lstat().st_blocks * 512
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            try:
                stat = os.lstat(os.path.join(above, name))
            except FileNotFoundError:
                continue
            links = seen[stat.st_dev, stat.st_ino] = seen.get((stat.st_dev, stat.st_ino), 0) + 1
            if links == stat.st_nlink or name in folders:
                total += stat.st_blocks * 512
    return total


class _Root:
    """One root: its runs first, since they say which environments are used."""

    def __init__(self, root: Path, found: FolderScan, *, now: float, older: float) -> None:
        self._root, self._found, self._now, self._older = root, found, now, older
        self._environments = Environments(root)
        self._used_by: dict[str, str] = {}  # key → what is open and uses it
        self._last: dict[str, float] = {}  # key → when something that used it was over
        self._open_runs: set[str] = set()  # ids
        self._unknown = ""  # what may use any of them

    def look(self) -> None:
        open_pipelines = set(self._pipelines())
        for run in runs_under(self._root):
            self._run(run, open_pipelines)
        for dir in half_made_under(self._root):
            if not PipelineDir(dir.path).is_pipeline() and self._now - dir.path.stat().st_mtime < _JUST_NOW:
                self._unknown = f"{dir.path.name} is being created"
        if self._environments.path.is_dir():
            self._built()
        for archive in unused_files(RootDir(self._root).supervisors):
            if self._now - archive.stat().st_mtime >= _HALF_MADE:
                self._offer(RemovableKind.SUPERVISOR, archive, "no run", archive.stat().st_mtime)

    # ── runs and pipelines ────────────────────────────────────────────────────

    def _pipelines(self) -> Iterator[str]:
        """The folders of those that are open; work folders of the others are noted."""
        for dir in pipelines_under(self._root):
            ended = _moment(dir.over)
            try:
                keys = [build.key for build in read_plan(dir).builds]
            except OnwardError:
                keys, self._unknown = [], f"{dir.path.name} cannot be read" if ended is None else self._unknown
            self._note(keys, dir.path.name, ended)
            if ended is None:
                yield str(dir.path)
            else:
                self._workdir(dir.path, dir.workdir, ended)

    def _run(self, run: RunDir, open_pipelines: set[str]) -> None:
        ended = _ended(run)
        try:
            spec_bytes = run.spec.read_bytes()
            spec = json.loads(spec_bytes)
        except (OSError, ValueError):
            self._unknown = f"{run.path.name} cannot be read" if ended is None else self._unknown
            return
        member = spec.get("member") or {}
        self._note([key.decode() for key in _KEY.findall(spec_bytes)], run.path.name, ended)
        if ended is None:
            self._open_runs.add(str(spec.get("id")))
        elif run.inputs.is_dir() and not is_finished(run):
            self._keep(run.workdir, "it contains the run's inputs, which a resumed run needs")
        elif member.get("pipeline") not in open_pipelines:
            self._workdir(run.path, run.workdir, ended)

    def _note(self, keys: list[str], name: str, ended: float | None) -> None:
        for key in keys:
            if ended is None:
                self._used_by.setdefault(key, name)
            else:
                self._last[key] = max(ended, self._last.get(key, 0.0))

    def _workdir(self, owner: Path, folder: Path, ended: float) -> None:
        try:
            if folder.is_symlink():
                self._keep(folder, "it is a link, and its target does not belong to Onward")
            elif folder.is_dir() and any(folder.iterdir()):
                self._offer(RemovableKind.WORKDIR, folder, owner.name, ended)
        except OSError as error:
            self._keep(folder, f"it cannot be read: {error.strerror}")

    # ── environments ──────────────────────────────────────────────────────────

    def _built(self) -> None:
        shown = set()
        for link in sorted(self._environments.path.iterdir()):
            if link.is_symlink() and link.exists():
                shown.add(link.resolve().name)
                self._environment(link)
        for folder in sorted(self._environments.made.iterdir()) if self._environments.made.is_dir() else ():
            if folder.name not in shown and folder.is_dir() and not folder.is_symlink():
                self._half_made(folder)

    def _environment(self, link: Path) -> None:
        folder = self._environments.made / link.resolve().name
        if link.resolve() != folder.resolve():
            self._keep(link, "it leads outside the environments folder")
        elif why := self._used_by.get(link.name) or self._unknown:
            self._keep(link, f"{why} uses it" if link.name in self._used_by else f"{why} and may use it")
        else:
            self._offer(RemovableKind.ENVIRONMENT, link, _name(folder), max(self._last.get(link.name, 0.0), folder.stat().st_mtime))

    def _half_made(self, folder: Path) -> None:
        """What a build left that was ended before it was whole, or that was on its way out."""
        touched = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
        run = folder.name.partition("-")[2].rpartition(".")[0]
        if run in self._open_runs:
            self._keep(folder, f"run {run} is building it")
        elif self._now - touched < _HALF_MADE:
            self._keep(folder, "it was changed within a day")
        else:
            self._offer(RemovableKind.HALF_MADE, folder, folder.name, touched)

    # ── what is told ──────────────────────────────────────────────────────────

    def _offer(self, kind: RemovableKind, path: Path, name: str, at: float) -> None:
        held = path.resolve() if kind is RemovableKind.ENVIRONMENT else path
        if held.lstat().st_uid != os.getuid():
            self._keep(path, f"it belongs to {_owner(held)}")
        elif not self._older or self._now - at >= self._older:  # what is too young is not worth a word
            self._found.items.append(Removable(kind=kind, path=path, name=name, bytes=freed_bytes(held), at=at))

    def _keep(self, path: Path, why: str) -> None:
        self._found.kept.append(KeptFolder(path=path, why=why))


def _remove(item: Removable) -> None:
    match item.kind:
        case RemovableKind.WORKDIR:
            for inside in item.path.iterdir():  # the folder itself belongs to the run
                if inside.is_dir() and not inside.is_symlink():
                    shutil.rmtree(inside)
                else:
                    inside.unlink()
        case RemovableKind.ENVIRONMENT:
            folder = item.path.resolve()
            item.path.unlink()  # first: nobody shall find half of it
            shutil.rmtree(folder)
        case RemovableKind.HALF_MADE:
            shutil.rmtree(item.path)
        case RemovableKind.SUPERVISOR:
            item.path.unlink()
        case RemovableKind.LEG:
            remove_leftover(item.path)


def _moment(marker: Path) -> float | None:
    """When it was over; None where it is open, or that is not known."""
    try:
        return float(json.loads(marker.read_bytes())["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ended(run: RunDir) -> float | None:
    """The same for a run, by the mark of its end that stands."""
    try:
        done = end_of(run)
        return float(done["at"]) if done else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _name(folder: Path) -> str:
    try:
        return str(json.loads((folder / "build.json").read_bytes())["name"])
    except (OSError, ValueError, KeyError):
        return folder.name


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:
        return f"user {path.stat().st_uid}"
