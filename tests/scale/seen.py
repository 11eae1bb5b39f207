"""What a run of the scale training did, from its journal and from what the training printed; and how much memory it took."""

from __future__ import annotations

import itertools
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

_SAVED = re.compile(r"^rank (\d+) saved (\d+) at (\S+) in (\S+) s$", re.MULTILINE)
_RESUMED = re.compile(r"^rank (\d+) resumed (\d+)$", re.MULTILINE)
_SKIPPED = re.compile(r"checkpoint (\d+) skipped")
_LOOK_EVERY = 0.3  # seconds


@dataclass(frozen=True, kw_only=True)
class SeenLeg:
    number: int
    saved: dict[int, list[int]]  # steps that each rank committed, by rank
    skipped: set[int]
    resumed: int | None
    events: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    @property
    def end(self) -> str:
        return "".join(event["end"] for event in self.of("ended") + self.of("found"))

    @property
    def newest(self) -> int | None:
        """The newest step that all ranks committed."""
        common = set.intersection(*map(set, self.saved.values())) if self.saved else set()
        return max(common, default=None)


def legs(folder: Path, events: list[dict[str, Any]]) -> list[SeenLeg]:
    found = []
    for number in sorted({event["leg"] for event in events if event["kind"] == "started"}):
        out, err = ((folder / "logs" / f"leg-{number:04d}.{stream}") for stream in ("out", "err"))
        printed = out.read_text() if out.exists() else ""
        skipped = {int(step) for step in _SKIPPED.findall(err.read_text() if err.exists() else "")}
        assert "FAULT" not in printed, f"leg {number}: {printed}"
        saved: dict[int, list[int]] = {}
        for rank, step, _, _ in _SAVED.findall(printed):
            if int(step) not in skipped:
                saved.setdefault(int(rank), []).append(int(step))
        steps = {int(step) for _, step in _RESUMED.findall(printed)}
        assert len(steps) <= 1, f"leg {number}: ranks went on from different steps: {steps}"
        mine = [event for event in events if event["leg"] == number]
        found.append(SeenLeg(number=number, saved=saved, skipped=skipped, resumed=min(steps, default=None), events=mine))
    return found


def nothing_lost(found: list[SeenLeg]) -> None:
    """Each leg went on from the newest step that the leg before it had committed."""
    for before, after in itertools.pairwise(found):
        newest = before.newest if before.newest is not None else before.resumed
        assert after.resumed == newest, f"leg {after.number} went on from {after.resumed}, and leg {before.number} had committed {newest}"


def legs_text(found: list[SeenLeg]) -> str:
    """A line for each leg: where it began and ended, and how its last seconds went."""
    lines = []
    for leg in found:
        asked, ended = leg.of("askedtostop"), leg.of("ended")
        claimed = leg.of("claimed")[0]
        words = [f"leg {leg.number} ({leg.end or 'open'}): from {leg.resumed}, committed {leg.newest}"]
        words.append("published " + (", ".join(f"{e['step']} in {e['stage_seconds']:.0f} s" for e in leg.of("published")) or "nothing"))
        if asked and claimed["deadline"]:
            words.append(f"asked {claimed['deadline'] - asked[0]['at']:.0f} s before the limit")
        if ended and claimed["deadline"]:
            words.append(f"ended {claimed['deadline'] - ended[0]['at']:.0f} s before it")
        words += [f"kept {event['step']} on the node" for event in leg.of("missed") if event.get("kept")]
        lines.append("; ".join(words))
    return "\n".join(lines)


def finished(shown: dict[str, Any], folder: Path) -> None:
    log = folder / "logs" / "supervisor.log"
    text = f"{shown['state']}: {shown.get('cause')} {shown.get('evidence')}\n{log.read_text() if log.exists() else ''}"
    assert shown["state"] == "finished", text


class Memory:
    """The most that supervisor and publisher of a run had resident together, sampled."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most = 0  # bytes

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_EVERY):
            self.most = max(self.most, sum(_resident(process) for process in Path("/proc").glob("[0-9]*") if self._ours(process)))

    def _ours(self, process: Path) -> bool:
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            return False
        return b"supervisor.pyz" in words and bytes(self._run) in words


def _resident(process: Path) -> int:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
