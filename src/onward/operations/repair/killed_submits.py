"""What a submit that was killed leaves behind: a run's folder without a run, the mark of a letter, code that arrived for nobody."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from onward.errors import StorageError
from onward.operations.submit.arriving_code import sweep_arrivals
from onward.rundir.layout import RunDir, half_made_under
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.root.once_per_request import is_marked, publish_spec

_OLD = 3600.0  # seconds in which nothing of a folder changed: nobody is at it any more


def sweep_killed_submits(root: Path, among: Sequence[Path] | None = None) -> list[str]:
    """Remove what is ours, old, and holds nothing of a run. What was removed, in words. `among`: where the caller knows which hold none."""
    if not root.is_dir():
        return []
    lines = []
    for dir in half_made_under(root) if among is None else _half_made(root, among):
        if dir.path.lstat().st_uid == os.getuid() and not _holds_a_run(dir) and _is_old(dir.path):
            if _finished(dir):
                lines.append(f"{dir.path}: finished a submit that was killed before its last step")
                continue
            shutil.rmtree(dir.path, ignore_errors=True)
            lines.append(f"{dir.path}: removed, left by a submit that was killed")
    for mark in root.glob(".[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]_*"):
        if mark.is_dir() and _is_old(mark) and mark.lstat().st_uid == os.getuid():
            shutil.rmtree(mark, ignore_errors=True)
    sweep_arrivals(root / ".arriving")
    return lines


def _finished(dir: RunDir) -> bool:
    """Of a request's run that was made but for the last step. Where that cannot be told now, another pass will: it must stay."""
    try:
        if is_marked(dir):
            publish_spec(dir)
            return True
        return False
    except StorageError as error:
        raise OSError(str(error)) from error


def _half_made(root: Path, among: Sequence[Path]) -> list[RunDir]:
    mine = (RunDir(path) for path in among if path.parent == root and path.is_dir() and not path.is_symlink())
    return [dir for dir in mine if not dir.is_run()]


def _holds_a_run(dir: RunDir) -> bool:
    """A pipeline, or anything that a leg or a desk wrote: then its spec is lost, and a person must look."""
    if PipelineDir(dir.path).plan.exists() or any(dir.params.glob("leg-*")) or dir.done.exists():
        return True
    written = (dir.claims, dir.journals, dir.spool, dir.logs, dir.results, dir.workdir)
    return any(names for folder in written for _, _, names in os.walk(folder))


def _is_old(folder: Path) -> bool:
    """By when anything in it was last touched, as the disk counts: copies keep other times of what they are copies of."""
    return all(time.time() - touched > _OLD for touched in _touched(folder))


def _touched(folder: Path) -> Iterator[float]:
    yield folder.lstat().st_ctime
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            yield Path(above, name).lstat().st_ctime
