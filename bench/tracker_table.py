"""The table that the tracker's bench prints, a row as soon as it is known: Markdown, so that it can be copied as it is."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Table:
    missed: list[str] = field(default_factory=list)
    rows: int = 0
    _notes: list[str] = field(default_factory=list)

    def begin(self, title: str) -> None:
        load = os.getloadavg()
        print(f"\n### {title}\n\nLoad of the machine before it: {load[0]:.1f} (1 min), {load[1]:.1f} (5 min).\n")
        print("| what | onward | beside it | goal | met |\n|---|---|---|---|---|", flush=True)
        self._notes = []

    def row(self, what: str, *, onward: str, peers: str = "–", goal: str = "–", met: bool | None = None) -> None:
        word = "–" if met is None else "yes" if met else "**no**"
        if met is False:
            self.missed.append(what)
        self.rows += 1
        print(f"| {what} | {onward} | {peers} | {goal} | {word} |", flush=True)

    def note(self, words: str) -> None:
        """Told after the part's rows."""
        self._notes.append(words)

    def end(self, seconds: float) -> None:
        print()
        for words in self._notes:
            print(words)
        print(f"({seconds:.0f} s)", flush=True)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} cores, {memory:.0f} GiB, {system}"


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def number(value: float) -> str:
    """Three digits, thousands set apart."""
    if value >= 1000:
        size = 10 ** (len(str(int(value))) - 3)
        return f"{round(value / size) * size:,.0f}"
    return f"{value:.3g}"
