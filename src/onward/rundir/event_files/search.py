"""TensorBoard's event files that a training writes elsewhere than where it was told: how they are found, and their place among a run's.

Trainers have places of their own: `runs/` below the folder they save into, `lightning_logs/` in the working folder. A look is into folders
with such names first, and into a limited number of folders and entries in all.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from onward.rundir.layout import LegLocal, is_dated

_MOST_FOLDERS = 200
_MOST_ENTRIES = 5000
_DEEPEST = 6
_NEVER = {"__pycache__", "node_modules", "site-packages", "wandb", "mlruns"}
_LIKELY = re.compile(r"runs|.*log.*|tb|.*tensorboard.*|events?|summar.*|out.*|.*output.*|results?|exp.*", re.IGNORECASE)
_SAYS_NOTHING = re.compile(r"(tb_?)?logs?|tb|tensorboard|events?|summar(y|ies)|outputs?|out|results?", re.IGNORECASE)
_BEGINS_A_START = ("runs", "lightning_logs")
_NAME = re.compile(r"events\.out\.tfevents\.(?P<at>\d{10})\.(?P<origin>.+)")
_PROCESS = re.compile(r"\.(?P<pid>\d+)\.\d+(\.v2)?$")


@dataclass(kw_only=True)
class EventFileSearch:
    """One look below a folder. `looked`: how many folders and links it asked the file system for."""

    base: Path
    looked: int = 0
    _queue: list[tuple[bool, int, str]] = field(default_factory=list)

    def files(self) -> Iterator[Path]:
        """Relative to the base. What cannot be read is left out."""
        self._queue = [(False, 0, "")]
        left = _MOST_ENTRIES
        while self._queue and left > 0 and self.looked < _MOST_FOLDERS:
            unlikely, depth, folder = heapq.heappop(self._queue)
            self.looked += 1
            with contextlib.suppress(OSError), os.scandir(self.base / folder) as entries:
                for entry in itertools.islice(entries, left):
                    left -= 1
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if "tfevents" in entry.name and entry.is_file(follow_symlinks=False):
                        yield Path(path)
                    elif depth < _DEEPEST and self._may_hold(entry):
                        likely = (depth > 0 and not unlikely) or _LIKELY.fullmatch(entry.name)
                        heapq.heappush(self._queue, (not likely, depth + 1, path))

    def _may_hold(self, entry: os.DirEntry[str]) -> bool:
        name = entry.name
        if name.startswith(".") or name in _NEVER or is_dated(name):  # other runs may lie in the working folder
            return False
        if not entry.is_symlink():
            return entry.is_dir(follow_symlinks=False)
        if not _LIKELY.fullmatch(name):
            return False
        self.looked += 1
        return entry.is_dir()


def begun_at(name: str) -> float | None:
    """When an event file was begun, as its name says; None where it does not."""
    match = _NAME.fullmatch(name)
    return float(match["at"]) if match else None


def written_by(name: str, *, host: str) -> int | None:
    """The process on this host that an event file's name speaks of."""
    match = _NAME.fullmatch(name)
    process = _PROCESS.search(match["origin"]) if match else None
    return int(process["pid"]) if match and process and match["origin"][: process.start()] == host else None


def event_file_place(found: Path) -> Path:
    """Below the run's tensorboard folder: without the folders that every training has, which would be part of the metrics' names."""
    parts = list(found.parts)
    begins = next((index for index, part in enumerate(parts[:-1]) if part in _BEGINS_A_START), None)
    if begins is not None:
        return Path(*parts[begins:])
    while len(parts) > 1 and _SAYS_NOTHING.fullmatch(parts[0]):
        parts.pop(0)
    return Path(*parts)


def link_event_files(local: LegLocal) -> None:
    """Those in the folder for checkpoints: linked to where the training was told to write them, from where they are mirrored.

    A training may remove its copy; a file that was replaced under its name is another one, and is not taken.
    """
    for found in EventFileSearch(base=local.checkpoints).files():
        target = local.tensorboard / event_file_place(found)
        with contextlib.suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(local.checkpoints / found, target)
