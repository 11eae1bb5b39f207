"""A folder of event files: which there are, when each begins, and what is new in one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from onward.rundir.event_files.frames import read_frames
from onward.rundir.event_files.scalar_events import read_event
from onward.rundir.files.no_links import open_folder_beneath, reading
from onward.tracker.tensorboard.legs import FileProgress

_HEAD = 256
_NAMED_TIME = re.compile(r"tfevents\.(\d{9,11})")


@dataclass(frozen=True, kw_only=True)
class EventFilePosition:
    """A file as it was left. `begun`: the time of its first event; None: it has none yet."""

    offset: int = 0
    size: int = -1
    head: str = ""
    begun: float | None = None
    life: FileProgress = field(default_factory=FileProgress)
    refused: bool = False


def is_event_file(name: str) -> bool:
    """TensorBoard's own rule."""
    return "tfevents" in name


@dataclass(frozen=True)
class EventFolder:
    """A folder of event files. Below its `root`, no link is followed."""

    folder: Path
    root: Path | None

    def files(self, *, deep: bool) -> dict[str, int]:
        """Event files and their sizes, by path relative to the folder. Links to folders are not followed."""
        found: dict[str, int] = {}
        below = [""]
        while below:
            inside = below.pop()
            try:
                with self._listed(inside) as entries:
                    for entry in entries:
                        name = f"{inside}{entry.name}"
                        if is_event_file(entry.name) and entry.is_file(follow_symlinks=self.root is None):
                            found[name] = entry.stat().st_size
                        elif deep and entry.is_dir(follow_symlinks=False):
                            below.append(f"{name}/")
            except (FileNotFoundError, NotADirectoryError):
                continue
        return found

    def begun(self, name: str) -> float | None:
        """The time of a file's first event; None where it has none yet."""
        try:
            with self._open(name) as file:
                data = file.read(1 << 16)
        except FileNotFoundError:
            return None
        frames = read_frames(data, 0, read_event)
        if not frames.found:
            return None
        named = _NAMED_TIME.search(name.rpartition("/")[2])
        return frames.found[0][1].time or (float(named[1]) if named else 0.0)

    def read(self, name: str, at: EventFilePosition, piece: int) -> tuple[int, str | None, bytes]:
        """Size, head and what is new; head None: the file is shorter than it was, or begins otherwise."""
        with self._open(name) as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(_HEAD)
            if at.head:
                length, digest = at.head.split(":")
                if size < at.offset or _digest(start[: int(length)]) != digest:
                    return size, None, b""
            file.seek(at.offset)
            return size, f"{len(start)}:{_digest(start)}", file.read(min(piece, max(size - at.offset, 0)))

    @contextlib.contextmanager
    def _listed(self, inside: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        if self.root is None:
            with os.scandir(self.folder / inside) as entries:
                yield entries
            return
        with open_folder_beneath(self.root, self.folder / inside) as handle, os.scandir(handle) as entries:
            yield entries

    def _open(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb") if self.root is None else reading(self.root, self.folder / name)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
