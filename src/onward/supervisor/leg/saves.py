"""What became of what the training saved: told to the journal, to whoever looks at the run, and to the plan for stopping."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from pathlib import Path

from onward.checkpoints.publishing.publisher import PublishReport
from onward.checkpoints.unpublished import unpublished
from onward.clock import Clock
from onward.model import events as ev
from onward.model.quantity import format_duration
from onward.rundir.journal import Journal
from onward.rundir.layout import LegLocal
from onward.sdk.contract import COMMIT_FILE
from onward.supervisor.stop.plan import StopPlanner

log = logging.getLogger(__name__)

_REFUSALS_TOLD = 3  # checkpoints, in a leg
_CLOCK_ERROR = 0.001  # seconds, of a time that was rounded


@dataclass(kw_only=True)
class LegSaves:
    leg: int
    local: LegLocal
    journal: Journal
    planner: StopPlanner
    clock: Clock
    newest: int | None = None  # step that was published
    _missed: dict[int, str] = field(default_factory=dict)  # steps that could not be stored since the last that could, and why
    _missing_since: float | None = None
    _learned_step: int | None = None
    _stored_until: float = 0.0  # unix seconds: when the last file of what is stored was written
    _refused: int = 0  # checkpoints, for what the ranks wrote of them

    def take(self, report: PublishReport) -> None:
        self._learn(report)
        if report.kind == "published":
            self._is_stored_again(report.step)
            self.newest = max(report.step, self.newest if self.newest is not None else -1)
            self._stored_until = max(self._stored_until, report.began + report.save_seconds)
            self.journal.write(
                ev.Published(
                    leg=self.leg,
                    at=self.clock.now(),
                    step=report.step,
                    bytes=report.bytes,
                    save_seconds=report.save_seconds,
                    stage_seconds=report.stage_seconds,
                )
            )
        elif report.kind != "publishing":
            self._miss(report)

    def _learn(self, report: PublishReport) -> None:
        """Sharper with every save: what this training and this store take here and now."""
        now = self.clock.now()
        if report.kind in ("publishing", "published") and report.step != self._learned_step:
            self._learned_step = report.step
            self.planner.saved(at=now, seconds=report.save_seconds, size=report.bytes)
        if report.kind == "publishing":
            self.planner.publishing(at=now, size=report.bytes)
        elif report.kind == "published":
            self.planner.published(at=now, seconds=report.stage_seconds, size=report.bytes)

    @property
    def left_behind(self) -> bool:
        """Something it saved could not be stored, and lies on the node."""
        return bool(self._missed)

    @property
    def last_missed(self) -> int | None:
        """The newest step that it saved and that could not be stored. None where that step, or a newer one, is stored."""
        newest = max(self._missed, default=None)
        return newest if newest is not None and (self.newest is None or newest > self.newest) else None

    def _is_stored_again(self, step: int) -> None:
        if self._missing_since is not None:
            gap = format_duration(self.clock.now() - self._missing_since)
            self._warn(f"checkpoints are stored again, from step {step} on, after a gap of {gap}")
            self._missing_since = None
        self._missed.clear()

    def _miss(self, report: PublishReport) -> None:
        """Tried again and again while the store is full: told once for each step."""
        if report.step in self._missed:
            return
        log.warning("checkpoint of step %d %s: %s", report.step, report.kind, report.reason)
        if report.kind == "refused":
            self._refused += 1
            if self._refused <= _REFUSALS_TOLD:
                more = "; later ones are only in the supervisor's log" if self._refused == _REFUSALS_TOLD else ""
                self._warn(report.reason + more)
        if report.kind == "missed":  # however many: the training goes on, and what it saved is stored as soon as there is room
            self._missed[report.step] = report.reason
            self._missing_since = self._missing_since or self.clock.now()
            self.journal.write(ev.Missed(leg=self.leg, at=self.clock.now(), step=report.step, reason=report.reason))

    def note_left_on_node(self, store: Path, *, cut_off: bool, at_deadline: bool) -> None:
        """What it saved and there was no time to publish: it stays where it is, and the next leg on that node publishes it.

        `cut_off`: the publisher was ended with something still to publish, which may be files that nothing has committed.
        """
        left = unpublished(self.local.checkpoints, store, leg=self.leg)
        if not left and not (cut_off and self._has_newer_files()):
            return
        step = left[-1].name.step if left else self._learned_step or 0
        if not left and step in self._missed:
            return
        folder = left[-1].folder if left else self.local.checkpoints
        why = f": {self._missed[max(self._missed)]}" if self._missed else ""
        stored = self.newest is not None and step <= self.newest
        what = f"what the training saved after step {step}" if stored else f"the checkpoint of step {step}"
        reason = f"the job ended before {what} was published{why}"
        if stored:
            self._warn(f"{reason}; it is in {folder}")  # nobody is told of a step that is stored
        self._missed[step] = reason
        log.warning("%s; it stays in %s", reason, folder)
        size = left[-1].bytes if left else self.planner.newest_bytes
        spent = self.planner.spent(self.clock.now()) if at_deadline else 0.0
        now = self.clock.now()
        self.journal.write(ev.Missed(leg=self.leg, at=now, step=step, reason=reason, bytes=size, seconds=spent, kept=str(folder)))

    def _has_newer_files(self) -> bool:
        """Written after what is stored, and committed by nothing: not folders of `run.checkpoint()`, hidden while they are written."""
        try:
            entries = list(self.local.checkpoints.iterdir())
        except OSError:
            return False
        loose = [entry for entry in entries if not entry.name.startswith(".") and not (entry / COMMIT_FILE).exists()]
        return any(_written(entry) > self._stored_until + _CLOCK_ERROR for entry in loose)

    def _warn(self, text: str) -> None:
        self.journal.write(ev.Warned(leg=self.leg, at=self.clock.now(), text=text))


def _written(path: Path) -> float:
    """When the newest file of a checkpoint was."""
    try:
        return max((file.lstat().st_mtime for file in (path, *path.rglob("*")) if not file.is_dir()), default=0.0)
    except OSError:
        return math.inf
