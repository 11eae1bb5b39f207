"""How far a run is by its TensorBoard files, where it logged nothing otherwise: read from their ends, however long they are."""

from __future__ import annotations

import re

from onward.rundir.files.no_links import reading
from onward.rundir.layout import RunDir
from onward.tracker.tensorboard.event_folder import EventFolder
from onward.tracker.tensorboard.frames import read_frames
from onward.tracker.tensorboard.scalar_events import read_event

_END = 1 << 17  # bytes
_MOST_FILES = 4  # the newest: a training writes one or a few at a time
_BEGUN = re.compile(r"tfevents\.(\d+)")


def event_file_step(dir: RunDir) -> int | None:
    """The highest step near the end of the newest files. None where there is none, or they cannot be read."""
    try:
        sizes = EventFolder(dir.tensorboard, dir.root).files(deep=True)
        newest = sorted(sizes, key=_begun)[-_MOST_FILES:]
        return max((step for name in newest for step in _steps(dir, name, sizes[name])), default=None)
    except OSError:
        return None


def _begun(name: str) -> tuple[int, str]:
    found = _BEGUN.search(name.rpartition("/")[2])
    return int(found[1]) if found else 0, name


def _steps(dir: RunDir, name: str, size: int) -> list[int]:
    start = max(0, size - _END)
    with reading(dir.root, dir.tensorboard / name) as file:
        file.seek(start)
        data = file.read(_END)
    return [event.step for _, event in read_frames(data, start, read_event).found if event.values]
