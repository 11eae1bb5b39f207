"""What of a run's folder is pushed: journals and spools line by line, logs and TensorBoard's files as they grow, small artifacts whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.errors import InvalidInput
from onward.rundir.files.artifacts import components
from onward.rundir.layout import LegLocal, RunDir

JOURNAL, SPOOL, LOGS, EVENTS, ARTIFACTS = "journal", "spool", "logs", "results/tensorboard", "results/artifacts"
LARGEST_ARTIFACT = 16 << 20
_MOST = 2000  # files of a room
_LOG = re.compile(r"leg-\d{4,9}\.(?:out|err|gpu(?:-n\d{1,9})?\.csv)|supervisor\.log")

PushAreas = Mapping[str, Sequence[Path]]


@dataclass(frozen=True, kw_only=True)
class FileToPush:
    """A file as the server knows it. `modified`: of one that is replaced rather than appended to, by which its content is known."""

    name: str
    path: Path
    size: int
    modified: int | None = None  # nanoseconds
    lines: bool = False  # only whole lines are sent

    @property
    def is_empty(self) -> bool:
        """A file without content that is one all the same; of one that grows, nothing is there yet."""
        return self.modified is not None and not self.size


def push_areas(run: RunDir, local: LegLocal | None = None) -> PushAreas:
    """Of a run's folder. Spools also as they lie on the node, where they are ahead."""
    spools = [run.spool, *([local.spool] if local else [])]
    return {JOURNAL: [run.journals], SPOOL: spools, LOGS: [run.logs], EVENTS: [run.tensorboard], ARTIFACTS: [run.artifacts]}


def records(rooms: PushAreas) -> list[FileToPush]:
    """Journals are found first: what a spool held when its journal ended is sent before that end.

    Of a file that lies in several folders, the longest counts."""
    best: dict[str, FileToPush] = {}
    for room in (JOURNAL, SPOOL):
        for folder in rooms.get(room, ()):
            for path in sorted(folder.glob("*.jsonl")):
                try:
                    found = FileToPush(name=f"{room}/{path.name}", path=path, size=path.stat().st_size, lines=True)
                except OSError:
                    continue
                if found.name not in best or found.size > best[found.name].size:
                    best[found.name] = found
    return list(best.values())


def files(rooms: PushAreas) -> Iterator[FileToPush]:
    for folder in rooms.get(LOGS, ()):
        yield from (found for found in _under(folder, LOGS) if _LOG.fullmatch(found.path.name))
    for folder in rooms.get(EVENTS, ()):
        yield from (found for found in _under(folder, EVENTS) if "tfevents" in found.path.name)
    for folder in rooms.get(ARTIFACTS, ()):
        yield from (found for found in _under(folder, ARTIFACTS, whole=True) if found.size <= LARGEST_ARTIFACT)


def _under(folder: Path, room: str, *, whole: bool = False) -> Iterator[FileToPush]:
    count = 0
    for above, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(above, name)
            file = f"{room}/{path.relative_to(folder).as_posix()}"
            try:
                components(file)
                seen = path.stat(follow_symlinks=False)
            except (OSError, InvalidInput):  # one that the server would not take either
                continue
            if path.is_symlink() or name.startswith(".") or count >= _MOST:
                continue
            count += 1
            yield FileToPush(name=file, path=path, size=seen.st_size, modified=seen.st_mtime_ns if whole else None)
