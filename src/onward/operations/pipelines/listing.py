"""The pipelines under a desk's roots, newest first, a page at a time: for those who look again and again.

Only what may have changed is read anew: of a pipeline that is over no more than that it still is, and a folder that is
a run's is never taken for a pipeline's again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from onward.errors import NotFound, OnwardError
from onward.operations.context import OperationsContext
from onward.operations.pipelines.record import pipeline_line
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir

_NAME = re.compile(r"(20\d\d-\d\d-\d\d)_([A-Z]+)_\S+")


class PipelineList:
    def __init__(self, context: OperationsContext) -> None:
        self._context = context
        self._lock = Lock()
        self._runs: set[Path] = set()
        self._over: dict[Path, tuple[int, dict[str, Any]]] = {}

    def page(self, *, text: str = "", limit: int, before: str | None = None) -> tuple[list[dict[str, Any]], str | None, list[str]]:
        """Lines of those whose folder's name has the text in it, what the next page begins after, and what cannot be read."""
        with self._lock:
            found = sorted(self._dirs(text.casefold()), key=lambda dir: _age(dir.path.name), reverse=True)
            left = [dir for dir in found if before is None or _age(dir.path.name) < _age(before)]
            lines, wrong = self._lines(left[:limit])
        return lines, left[limit - 1].path.name if len(left) > limit else None, wrong

    def named(self, names: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
        """Lines of those with these folder names, as far as they are here, and what cannot be read."""
        dirs = []
        for name in names:
            with suppress(NotFound):
                dirs.append(self.find(name))
        with self._lock:
            return self._lines(dirs)

    def find(self, name: str) -> PipelineDir:
        """By its folder's name alone: nothing but what lies right under a root can be meant."""
        if _NAME.fullmatch(name) and name.isprintable() and "/" not in name:
            for root in self._context.roots:
                dir = PipelineDir(root / name)
                if not dir.path.is_symlink() and dir.is_pipeline():
                    return dir
        raise NotFound(f"there is no pipeline {name[:100]!r}", hint="/api/v1/pipelines lists them, `onward pipeline list` too")

    def _dirs(self, text: str) -> Iterator[PipelineDir]:
        """Of two of one name, in two roots, the first root's, as `find` has it."""
        seen: set[str] = set()
        for root in self._context.roots:
            for path in root.iterdir() if root.is_dir() else ():
                name = path.name
                if path in self._runs or name in seen or text not in name.casefold() or not _NAME.fullmatch(name):
                    continue
                dir = PipelineDir(path)
                if not path.is_symlink() and dir.is_pipeline():
                    seen.add(name)
                    yield dir
                elif RunDir(path).is_run():
                    self._runs.add(path)

    def _lines(self, dirs: Iterable[PipelineDir]) -> tuple[list[dict[str, Any]], list[str]]:
        lines, wrong = [], []
        for dir in dirs:
            try:
                lines.append(self._line(dir))
            except (OnwardError, OSError, ValueError, KeyError, TypeError) as error:
                wrong.append(f"{dir.path.name}: {error}")
        return lines, wrong

    def _line(self, dir: PipelineDir) -> dict[str, Any]:
        ended = dir.over.stat().st_mtime_ns if dir.over.exists() else None
        held = self._over.get(dir.path)
        if held and held[0] == ended:
            return held[1]
        line = pipeline_line(dir)
        if ended is not None:
            self._over[dir.path] = (ended, line)
        return line


def _age(name: str) -> tuple[str, int, str, str]:
    """A later day is newer, and of a day AA is newer than Z."""
    match = _NAME.fullmatch(name)
    day, letter = match.groups() if match else ("", "")
    return day, len(letter), letter, name
