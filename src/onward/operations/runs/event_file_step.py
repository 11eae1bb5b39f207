"""How far a run is by its TensorBoard files, where it logged nothing otherwise: read from their ends, however long they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from onward.rundir.event_files.frames import read_frames
from onward.rundir.event_files.scalar_events import read_event
from onward.rundir.files.no_links import open_folder_beneath, reading
from onward.rundir.layout import RunDir

_END = 1 << 17  # bytes
_MOST_FILES = 4  # the newest: a training writes one or a few at a time
_DEEPEST = 6  # folders
_BEGUN = re.compile(r"tfevents\.(\d+)")


def event_file_step(dir: RunDir) -> int | None:
    """The highest step near the end of the newest files. None where there is none, or they cannot be read."""
    try:
        sizes = dict(_event_files(dir, dir.tensorboard, _DEEPEST))
        newest = sorted(sizes, key=_begun)[-_MOST_FILES:]
        return max((step for name in newest for step in _steps(dir, name, sizes[name])), default=None)
    except OSError:
        return None


def _event_files(dir: RunDir, folder: Path, deep: int) -> Iterator[tuple[str, int]]:
    """By path relative to the run's folder of event files, with their sizes. No link is followed."""
    with open_folder_beneath(dir.root, folder) as handle, os.scandir(handle) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False), entry.stat(follow_symlinks=False).st_size) for entry in entries]
    for name, is_folder, size in found:
        if is_folder and deep:
            yield from _event_files(dir, folder / name, deep - 1)
        elif not is_folder and "tfevents" in name:
            yield str((folder / name).relative_to(dir.tensorboard)), size


def _begun(name: str) -> tuple[int, str]:
    found = _BEGUN.search(name.rpartition("/")[2])
    return int(found[1]) if found else 0, name


def _steps(dir: RunDir, name: str, size: int) -> list[int]:
    start = max(0, size - _END)
    with reading(dir.root, dir.tensorboard / name) as file:
        file.seek(start)
        data = file.read(_END)
    return [event.step for _, event in read_frames(data, start, read_event).found if event.values]
