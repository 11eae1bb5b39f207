"""From events to legs and keys. Pure.

Where nobody but the files can tell, several files in a folder are several lives of a training, and a life is a leg. Within a file a new
one begins where a writer says so (`purge_step`: what was logged from that step on is superseded) or where the steps of a metric go back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from onward.rundir.event_files.scalar_events import ScalarEvent
from onward.tracker.series.chunks import Columns

MOST_TURNS = 100  # of one file: whose steps go back more often are in no order, and are left as they are
_LONGEST_KEY = 250
_NAMES_A_START = re.compile(
    r"lightning_logs|version_\d+|runs|"  # Lightning's; torch's and the Trainer's
    r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.+|"  # Nov15_12-30-00_node7
    r"\d{8}-\d{6}|\d{4}-\d\d-\d\d[T_-]\d\d.?\d\d.?\d\d|\d{10}(?:\.\d+)?"
)


@dataclass(frozen=True, kw_only=True)
class FileProgress:
    """How far a file has come: its leg (0: none yet), the last step of each metric in it, and how often it has turned back."""

    leg: int = 0
    last: Mapping[str, int] = field(default_factory=dict)
    turns: int = 0


@dataclass(kw_only=True)
class LegEvents:
    """What a file has for one leg. `resumed`: the step after which it supersedes what was there, where it says so."""

    leg: int
    turns: int = 0
    resumed: int | None = None
    started: float = 0.0
    ended: float = 0.0
    columns: dict[str, Columns] = field(default_factory=dict)


def split_into_legs(events: Iterable[ScalarEvent], life: FileProgress, newest: int) -> tuple[list[LegEvents], FileProgress]:
    """Events of one file, told apart by legs; `newest` is the highest number that is taken."""
    found: list[LegEvents] = []
    last = dict(life.last)
    now = LegEvents(leg=life.leg, turns=life.turns)
    newest = max(newest, life.leg)
    for event in events:
        fresh = now.leg == 0
        back = now.turns < MOST_TURNS and any(last.get(tag, event.step) > event.step for tag, _ in event.values)
        if event.begins or back or (fresh and event.values):
            if now.columns or last or fresh or not event.begins:
                newest += 1
                now = LegEvents(leg=newest, turns=now.turns + (0 if fresh else 1), started=event.time)
                last.clear()
            if event.begins:
                now.resumed = event.step - 1
        if (event.values or event.begins) and (not found or found[-1] is not now):
            found.append(now)
        if event.values:
            add_event(now.columns, event)
            last.update((tag, event.step) for tag, _ in event.values)
            now.ended = max(now.ended, event.time)
    return found, replace(life, leg=now.leg, last=last, turns=now.turns)


def all_of_one_leg(events: Iterable[ScalarEvent], leg: int) -> LegEvents:
    """The same where it is known which leg they are of."""
    stretch = LegEvents(leg=leg)
    for event in events:
        add_event(stretch.columns, event)
    return stretch


def add_event(columns: dict[str, Columns], event: ScalarEvent) -> None:
    at = round(event.time * 1e6)
    for tag, value in event.values:
        held = columns.get(tag)
        if held is None:
            held = columns[tag] = Columns([], [], [])
        held.steps.append(event.step)  # type: ignore[attr-defined]
        held.times.append(at)  # type: ignore[attr-defined]
        held.values.append(value)  # type: ignore[attr-defined]


def is_storable_key(key: str) -> bool:
    return 0 < len(key) <= _LONGEST_KEY and "\x00" not in key


# ── keys ──────────────────────────────────────────────────────────────────────


def short_folder(folder: str) -> str:
    """A folder below a run's own, without the parts that name a start rather than a thing: `lightning_logs/version_3/train` is `train`."""
    return "/".join(part for part in folder.split("/") if part and not _NAMES_A_START.fullmatch(part))


def key_prefixes(files: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """What the keys of a folder's files begin with, by (folder, leg), oldest first: the short name; where two folders of one leg would
    have the same, the later one keeps its whole."""
    taken: dict[tuple[int, str], str] = {}
    found: dict[tuple[str, int], str] = {}
    for folder, leg in files:
        brief = short_folder(folder)
        mine = taken.setdefault((leg, brief), folder) == folder
        name = brief if mine else folder
        found[folder, leg] = f"{name}/" if name else ""
    return found


def leg_at(time: float, starts: Mapping[int, float]) -> int:
    """The leg in which a file was begun: the last that had started by then. Both times are of the same node's clock."""
    begun = [leg for leg, start in starts.items() if start <= time]
    return max(begun, default=min(starts, default=1))
