"""The ranks of a training, as they are known on one node: the notes they leave there, how they ended, and how to end them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.agreement import Report
from onward.supervisor.host import session_processes
from onward.supervisor.verdict import describe_exit

Note = tuple[str, Mapping[str, Any]]  # the file's name and what it says

REPORT, TASK, EXIT = "rank-", "task-", "exit-"


class Notes:
    """Follows the notes in a node's folder: each call tells those that are new or have changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, int]] = {}

    def new(self) -> list[Note]:
        found: list[Note] = []
        try:
            entries = [entry for entry in os.scandir(self._folder) if entry.name.endswith(".json")]
        except OSError:
            return []
        for entry in sorted(entries, key=lambda e: e.name):
            try:
                stat = entry.stat()
                mark = (stat.st_ino, stat.st_mtime_ns)
                if self._seen.get(entry.name) == mark:
                    continue
                found.append((entry.name, json.loads(Path(entry.path).read_bytes())))
                self._seen[entry.name] = mark
            except (OSError, ValueError):
                continue  # seen again at the next call
        return found


@dataclass(frozen=True, kw_only=True)
class Exit:
    rank: int
    code: int  # or minus the signal that ended it
    at: float
    host: str = ""
    out_of_memory: bool = False
    last: str = ""  # what it wrote last on stderr

    @property
    def saved(self) -> bool:
        return self.code in (0, EXIT_AGAIN)


@dataclass(kw_only=True)
class Ranks:
    """All of them, from the notes of all nodes."""

    reports: dict[int, Report] = field(default_factory=dict)
    exits: dict[int, Exit] = field(default_factory=dict)
    world: int = 1

    def take(self, notes: Iterable[Note]) -> None:
        for name, note in notes:
            try:
                self._take(name, note)
            except (KeyError, TypeError, ValueError):
                continue  # no note of ours

    def _take(self, name: str, note: Mapping[str, Any]) -> None:
        if name.startswith(REPORT):
            report = Report.of(note)
            self.reports[report.rank] = report
            self.world = max(self.world, report.world)
        elif name.startswith(TASK):
            self.world = max(self.world, int(note["world"]))
        elif name.startswith(EXIT):
            ended = Exit(
                rank=int(note["rank"]),
                code=int(note["code"]),
                at=float(note["at"]),
                host=str(note.get("host", "")),
                out_of_memory=bool(note.get("out_of_memory")),
                last=str(note.get("last", "")),
            )
            self.exits[ended.rank] = ended

    @property
    def termed(self) -> bool:
        return any(report.term for report in self.reports.values())

    def first_failure(self) -> Exit | None:
        """The rank that failed first: the others fail because of it."""
        return min((ended for ended in self.exits.values() if not ended.saved), key=lambda e: e.at, default=None)

    def code(self, launcher: int) -> int:
        """The training's exit code, of its launcher's and its ranks': a failure of one is a failure; 75 of one asks for another leg."""
        if not self.exits:
            return launcher
        failed = self.first_failure()
        if failed:
            return failed.code
        if len(self.exits) < self.world and launcher:
            return launcher
        return EXIT_AGAIN if any(ended.code == EXIT_AGAIN for ended in self.exits.values()) else 0

    def evidence(self) -> str:
        failed = self.first_failure()
        if not failed:
            return ""
        where = f" on {failed.host}" if failed.host else ""
        return f"rank {failed.rank} of {self.world}{where}: {describe_exit(failed.code)}\n{failed.last}".rstrip()


def signal_tasks(folder: Path, number: int, *, all_they_started: bool) -> None:
    """To the training processes of this node; or to everything they started as well."""
    for path in folder.glob(f"{TASK}*.json"):
        try:
            pid = int(json.loads(path.read_bytes())["pid"])
        except (OSError, ValueError, KeyError):
            continue
        for process in session_processes(pid) if all_they_started else [pid]:
            try:
                os.kill(process, number)
            except (ProcessLookupError, PermissionError):
                continue
