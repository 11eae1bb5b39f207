"""The stager: carries complete checkpoints from the node's disk to the run's folder, and lets old ones go.

It runs as a process of its own, so that neither hashing nor a hanging file system can slow training or its
supervisor. It reports each outcome as a value; the supervisor writes the journal.
"""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.find import checkpoints
from onward.checkpoints.gather import NotGathered, assemble, incomplete, lacking, put, shares
from onward.checkpoints.publish import SourceChanged, delete, publish, remove_partials
from onward.checkpoints.watch import Candidate, Watcher
from onward.clock import Clock
from onward.errors import StorageError
from onward.model.checkpoint import CheckpointName, to_delete
from onward.model.spec import CheckpointRule

log = logging.getLogger(__name__)

_MOST_WAITING = 3  # saved faster than they can be carried away: the older ones are skipped


@dataclass(frozen=True, kw_only=True)
class Report:
    kind: str  # published | missed | skipped | refused: not for the store, but for what the ranks wrote, or did not
    step: int
    bytes: int = 0
    save_seconds: float = 0.0
    stage_seconds: float = 0.0
    reason: str = ""
    began: float = 0.0  # when the training began to save it, unix seconds; 0: not known


class Stager:
    def __init__(
        self,
        watcher: Watcher,
        store: Path,
        *,
        leg: int,
        rule: CheckpointRule,
        resumed_step: int | None,
        progress: Callable[[], tuple[int | None, Mapping[str, float]]],
        clock: Clock,
        shares: Path | None = None,
    ) -> None:
        self._watcher = watcher
        self._shares = shares  # the folder into which the ranks on this node commit theirs
        self._store = store
        self._leg = leg
        self._rule = rule
        self._progress = progress
        self._clock = clock
        self._last_step = resumed_step if resumed_step is not None else -1
        self._published: set[int] = set()
        self._refused: set[int] = set()  # told already
        remove_partials(store, before_leg=leg)

    def work(self, *, closed: bool = False) -> Iterator[Report]:
        """Deal with everything that is complete now. `closed`: the training has gone; this is the last look."""
        waiting = self._watcher.ready(now=self._clock.now(), closed=closed)
        while len(waiting) > _MOST_WAITING and self._rule.best is None:
            skipped = waiting.pop(0)
            self._drop(skipped)
            yield Report(
                kind="skipped", step=skipped.step or 0, reason="newer checkpoints were complete before this one could be carried over"
            )
        for candidate in waiting:
            report = self._carry(candidate)
            if report:
                yield report
            if report and report.kind == "published":  # only now that it has been told: a stager killed here tells it again
                self._drop(candidate)
                self._retain()
        if self._shares:
            yield from self._gather(self._shares)

    @property
    def waits_for_shares(self) -> bool:
        return incomplete(self._store, leg=self._leg)

    def _gather(self, folder: Path) -> Iterator[Report]:
        """Put this node's shares into the store, and publish what the shares of all nodes make complete."""
        for share in shares(folder):
            try:
                put(share, self._store, leg=self._leg)
            except SourceChanged:
                continue
            except StorageError as error:
                yield Report(kind="missed", step=share.step, save_seconds=share.seconds, reason=str(error))
        if not self.waits_for_shares:
            return
        began = self._clock.now()
        try:
            self._progress()
        except OSError as error:
            log.warning("what was logged cannot be stored: %s", error)
            return
        for gathered in assemble(self._store, leg=self._leg, created=began):
            if isinstance(gathered, NotGathered):
                yield from self._not_gathered(gathered)
                continue
            manifest = gathered.manifest
            self._published.add(manifest.step)
            self._last_step = max(manifest.step, self._last_step)
            yield Report(
                kind="published",
                step=manifest.step,
                bytes=manifest.bytes,
                save_seconds=gathered.save_seconds,
                stage_seconds=self._clock.now() - began,
                began=gathered.began,
            )
            self._retain()

    def last_words(self) -> Iterator[Report]:
        """Nothing more comes: what of the ranks' shares makes no checkpoint."""
        for found in lacking(self._store, leg=self._leg):
            yield from self._not_gathered(found)

    def _not_gathered(self, found: NotGathered) -> Iterator[Report]:
        if found.later:
            yield Report(kind="missed", step=found.step, reason=found.reason)
        elif found.step not in self._refused:
            self._refused.add(found.step)
            yield Report(kind="refused", step=found.step, reason=found.reason)

    def _carry(self, candidate: Candidate) -> Report | None:
        began = self._clock.now()
        try:
            logged, values = self._progress()
        except OSError as error:
            step = self._last_step + 1 if candidate.step is None else candidate.step
            return Report(
                kind="missed", step=step, save_seconds=candidate.save_seconds, reason=f"what was logged cannot be stored: {error}"
            )
        step = self._step_for(candidate, logged)
        try:
            manifest = publish(
                candidate.sources,
                self._store,
                CheckpointName(self._leg, step),
                created=began,
                made_by=candidate.made_by,
                metrics=candidate.metrics or {key: value for key, value in values.items() if math.isfinite(value)},
            )
        except SourceChanged:
            return None  # not complete after all: seen again later
        except StorageError as error:
            return Report(kind="missed", step=step, save_seconds=candidate.save_seconds, reason=str(error))
        self._published.add(step)
        self._last_step = max(step, self._last_step)
        return Report(
            kind="published",
            step=step,
            bytes=manifest.bytes,
            save_seconds=candidate.save_seconds,
            stage_seconds=self._clock.now() - began,
            began=max((mtime for _, _, mtime in candidate.fingerprint), default=0) / 1e9 - candidate.save_seconds,
        )

    def _step_for(self, candidate: Candidate, logged: int | None) -> int:
        """The step the training named; for files that name none, or name one again, the next that is free."""
        if candidate.made_by == "sdk" and candidate.step is not None:
            return candidate.step
        step = candidate.step if candidate.step is not None else logged
        if step is None or step in self._published or (candidate.step is None and step <= self._last_step):
            step = self._last_step + 1
        return step

    def _drop(self, candidate: Candidate) -> None:
        self._watcher.done_with(candidate)
        if candidate.folder:
            shutil.rmtree(candidate.folder, ignore_errors=True)

    def _retain(self) -> None:
        """Old ones that cannot be let go now are tried again after the next checkpoint."""
        for old in to_delete(checkpoints(self._store), self._rule):
            try:
                delete(self._store, old.name)
            except OSError as error:
                log.warning("%s could not be deleted: %s", old.name, error)
