"""The ranks of a training, as they are known on one node: the notes they leave there, how they ended, and how to end them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.leg.verdict import describe_exit
from onward.supervisor.ranks.stop_agreement import RankReport
from onward.supervisor.telemetry.host import session_processes

Note = tuple[str, Mapping[str, Any]]  # the file's name and what it says

_FEW = 8
_LONGEST = 200  # characters

REPORT_FILE, STARTED_FILE, EXIT_FILE = "rank-", "task-", "exit-"


class RankNotes:
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
class RankExit:
    rank: int
    code: int  # or minus the signal that ended it
    at: float
    host: str = ""
    out_of_memory: bool = False
    last: str = ""  # what it wrote last on stderr

    @property
    def saved(self) -> bool:
        return self.code in (0, EXIT_AGAIN)

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.last.splitlines() if line.strip()]
        return lines[-1][:_LONGEST] if lines else ""


@dataclass(kw_only=True)
class RankStates:
    """All of them, from the notes of all nodes."""

    reports: dict[int, RankReport] = field(default_factory=dict)
    exits: dict[int, RankExit] = field(default_factory=dict)
    world: int = 1

    def take(self, notes: Iterable[Note]) -> None:
        for name, note in notes:
            try:
                self._take(name, note)
            except (KeyError, TypeError, ValueError):
                continue  # no note of ours

    def _take(self, name: str, note: Mapping[str, Any]) -> None:
        if name.startswith(REPORT_FILE):
            report = RankReport.of(note)
            self.reports[report.rank] = report
            self.world = max(self.world, report.world)
        elif name.startswith(STARTED_FILE):
            self.world = max(self.world, int(note["world"]))
        elif name.startswith(EXIT_FILE):
            ended = RankExit(
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

    def first_failure(self, *, before: float = math.inf) -> RankExit | None:
        """The rank that failed first: the others fail because of it. From `before` on they were ended by us."""
        failed = (ended for ended in self.exits.values() if not ended.saved and ended.at < before)
        return min(failed, key=lambda e: e.at, default=None)

    def stayed(self, *, since: float) -> str:
        """Which ranks had not left by themselves at this moment, and which had. Empty where nothing is known of ranks."""
        left = sorted(rank for rank, ended in self.exits.items() if ended.saved and ended.at < since)
        others = [rank for rank in range(self.world) if rank not in left]
        if self.world == 1 or not others:
            return ""
        return f"{_ranks(others)} stayed" + (f", {_ranks(left)} had left" if left else "")

    def left_alone(self, *, before: float) -> str:
        """Which ranks had ended well by then, while others go on: to say so."""
        left = sorted(ended.rank for ended in self.exits.values() if ended.saved and ended.at < before)
        if not left or len(self.exits) >= self.world:
            return ""
        others = [rank for rank in range(self.world) if rank not in self.exits]
        code = self.exits[left[0]].code
        return f"{_ranks(left)} ended with {describe_exit(code)} while {_ranks(others)} continued, and may wait for it"

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

    def name(self, ended: RankExit) -> str:
        return f"rank {ended.rank} of {self.world}" + (f" on {ended.host}" if ended.host else "")

    def evidence(self) -> str:
        failed = self.first_failure()
        if not failed:
            return ""
        return f"{self.name(failed)}: {describe_exit(failed.code)}\n{failed.last}".rstrip()


def _ranks(numbers: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 1, 2`; of very many the first few."""
    few = ", ".join(map(str, numbers[:_FEW])) + (f" and {len(numbers) - _FEW} more" if len(numbers) > _FEW else "")
    return f"rank {few}" if len(numbers) == 1 else f"ranks {few}"


def rank_pids(folder: Path) -> list[int]:
    """The training processes of this node, each the first of a session of its own, as their tasks have noted them."""
    found = []
    for path in folder.glob(f"{STARTED_FILE}*.json"):
        try:
            found.append(int(json.loads(path.read_bytes())["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def signal_ranks(folder: Path, number: int, *, all_they_started: bool) -> None:
    """To the training processes of this node; or to everything they started as well."""
    for pid in rank_pids(folder):
        for process in session_processes(pid) if all_they_started else [pid]:
            try:
                os.kill(process, number)
            except (ProcessLookupError, PermissionError):
                continue
