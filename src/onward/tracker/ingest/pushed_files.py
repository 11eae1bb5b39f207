"""Files of runs whose folders nobody here can read, as their jobs send them: logs and TensorBoard's files, laid out as in a run's folder.

`<files>/.pushed/<run>/logs/…`; `<files>/.pushed/.fresh/<run>` changes when event files of the run have grown, so that whoever reads them
looks at those alone. Artifacts go where uploads go.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from onward.errors import InvalidInput
from onward.rundir.files.artifacts import ArtifactFiles
from onward.rundir.files.pieces import append
from onward.rundir.layout import RunDir

EVERYTHING = (1 << 53) - 1  # where to send on of a file that is seen here anyway: nowhere
LARGEST = 1 << 30  # bytes of one log or event file
ARTIFACTS = "results/artifacts/"
_EVENTS = "results/tensorboard/"
_RECORDS = ("journal/", "spool/")
_LOG = re.compile(r"logs/(?:leg-\d{4,9}\.(?:out|err|gpu(?:-n\d{1,9})?\.csv)|supervisor\.log)")


def is_record(file: str) -> bool:
    return file.startswith(_RECORDS)


class PushedFiles:
    def __init__(self, folder: Path) -> None:
        """`folder`: where the server keeps its files."""
        self._top = folder / ".pushed"
        self._files = ArtifactFiles(self._top, root=self._top, largest=LARGEST, private=True)
        self._looked: dict[str, int] = {}

    def take(self, run: str, file: str, offset: int, data: bytes) -> int:
        """Take a piece of a log or an event file; the offset from which to send next."""
        if not (_LOG.fullmatch(file) or (file.startswith(_EVENTS) and "tfevents" in file.rpartition("/")[2])):
            raise InvalidInput(
                f"{file[:80]!r} is not a file of a run that can be sent",
                hint="such as journal/leg-0001.jsonl, logs/leg-0001.out, or one under results/tensorboard or results/artifacts",
            )
        now = append(self._files, f"{run}/{file}", offset, data)
        if data and file.startswith(_EVENTS):
            self._files.put(f".fresh/{run}", [b""])
        return now

    def folder_of(self, run: str) -> RunDir | None:
        """What was sent of a run, to be read as a run's folder is."""
        if not run or "/" in run or run.startswith("."):
            return None
        dir = RunDir(self._top / run)
        return dir if dir.path.is_dir() else None

    def again(self, run: str) -> None:
        """Tell of it once more: it could not be looked at."""
        self._looked.pop(run, None)

    def fresh(self) -> Iterator[str]:
        """Runs whose event files have grown since they were last told of, by this process."""
        try:
            with os.scandir(self._top / ".fresh") as entries:
                seen = {entry.name: entry.stat().st_mtime_ns for entry in entries if entry.is_file() and not entry.name.startswith(".")}
        except FileNotFoundError:
            return
        for run, changed in seen.items():
            if self._looked.get(run) != changed:
                self._looked[run] = changed  # before it is looked at: what comes meanwhile is told of again
                yield run
