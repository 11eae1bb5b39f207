"""The publisher: carries complete checkpoints from the node's disk to the run's folder, and lets old ones go.

It runs as a process of its own, so that neither hashing nor a hanging file system can slow training or its
supervisor. It reports each outcome as a value; the supervisor writes the journal.
"""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.copying import Moved
from onward.checkpoints.disk_space import free_bytes
from onward.checkpoints.manifest import read_manifest
from onward.checkpoints.publishing.delete_old import delete_old
from onward.checkpoints.publishing.full_store import FullStoreRetry
from onward.checkpoints.publishing.order import Steps, may_go_unpublished, may_skip, next_to_publish
from onward.checkpoints.publishing.publish import SourceChanged, publish, remove_partials
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.shares import node_files
from onward.checkpoints.shares.gather import CheckpointShare, NotGathered, assemble, incomplete, lacking, next_shares, put_share, shares
from onward.checkpoints.watching.candidate import Candidate
from onward.checkpoints.watching.listing import Fingerprint
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import Clock
from onward.errors import CheckpointDamaged, StorageError, StorageFull
from onward.model.checkpoint import CheckpointName
from onward.model.spec import CheckpointRule

log = logging.getLogger(__name__)

_LOOK_FOR_SHARES = 1.0  # seconds between two looks into the store while shares of other nodes are awaited
_EXPECTING_NONE = 30.0  # and while none are: a listing of shared storage has its price
_SPEAK_EVERY = 10.0  # seconds
_SILENT_NODE = 60.0  # seconds after which a node that has said nothing is taken to have no files


@dataclass(frozen=True, kw_only=True)
class PublishReport:
    kind: str  # publishing | moving | published | missed | skipped | refused: not for the store, but for what the ranks wrote, or did not
    step: int
    bytes: int = 0
    save_seconds: float = 0.0
    stage_seconds: float = 0.0
    reason: str = ""
    began: float = 0.0  # when the training began to save it, unix seconds; 0: not known


class CheckpointPublisher:
    def __init__(
        self,
        watcher: SaveWatcher,
        store: Path,
        *,
        leg: int,
        rule: CheckpointRule,
        resumed_step: int | None,
        progress: Callable[[], tuple[int | None, Mapping[str, float]]],
        clock: Clock,
        shares: Path | None = None,
        announce: Callable[[PublishReport], None] = lambda report: None,
        nodes: int = 1,
        moved: Moved | None = None,
        newest_first: bool = False,
        fenced: Callable[[], None] = lambda: None,
    ) -> None:
        """`announce` hears of each publish when it begins. `fenced` is asked before each name appears, and raises TakenOver where
        this leg may publish no more.

        There is one publisher of a leg at a time: it holds the lock of the leg's folder.
        """
        self._fenced = fenced
        self._newest_first = newest_first
        self._watcher = watcher
        self._shares = shares  # the folder into which the ranks on this node commit theirs
        self._nodes = nodes
        self._speak_at = 0.0
        self._hear_others_until: float | None = None
        self._closed = False
        self._store = store
        self._leg = leg
        self._rule = rule
        self._progress = progress
        self._clock = clock
        self._announce = announce
        self._moved = moved
        remove_partials(store, before_leg=leg, publisher_of=leg)
        node_files.remove_node_notes(store, before_leg=leg)
        here = [name.step for name in published_names_of(store) if name.leg == leg]  # by a publisher of this leg before this one
        self._last_step = max(-1 if resumed_step is None else resumed_step, *here, -1)
        self._unnumbered_step: int | None = None
        self._published: set[int] = set()
        self._refused: set[int] = set()  # told already
        self._look_for_shares_at = 0.0
        self._room = FullStoreRetry()
        self._takes_nothing = False  # the last try failed, whatever the reason
        self._full: StorageFull | None = None  # what the store said when it was last tried in vain
        self._told_full: set[Fingerprint] = set()

    def work(self, *, closed: bool = False, killed_at: float | None = None) -> Iterator[PublishReport]:
        """Deal with everything that is complete now. `closed`: the training has gone; this is the last look.

        `killed_at`: it did not leave by itself, so that files it was writing then are not whole.
        """
        killed = killed_at is not None
        if closed and not self._closed:
            self._room = FullStoreRetry()  # try at once what there is little time left for
        self._closed = closed
        if self._takes_nothing and not closed:
            yield from self._make_room_on_node()
        tried: set[tuple[int | None, str]] = set()  # one that fails now is tried again at the next look
        while waiting := [
            c
            for c in self._watcher.ready(now=self._clock.now() if killed_at is None else killed_at, closed=closed, killed=killed)
            if (c.step, c.made_by) not in tried
        ]:
            steps = [candidate.step for candidate in waiting]
            skipped = [waiting[at] for at in self._may_skip(steps, closed=closed)]
            for candidate in skipped:
                self._drop(candidate)
                yield PublishReport(kind="skipped", step=candidate.step or 0, reason="a newer checkpoint was published before this one")
            if skipped:
                continue
            candidate = waiting[next_to_publish(steps, self._rule, closed=closed or self._newest_first)]
            tried.add((candidate.step, candidate.made_by))
            report = self._carry(candidate)
            if report:
                yield report
            if report and report.kind == "published":  # only now that it has been told: a publisher killed here tells it again
                self._drop(candidate)
                delete_old(self._store, self._rule, leg=self._leg)
        for at, lacks in self._watcher.incomplete:
            yield from self._refuse(self._last_step + 1 if at is None else at, lacks, last_save=at is None)
        if self._shares:
            self._speak_for_nodes_without_files(self._shares, closed=closed)
            yield from self._gather(self._shares, closed=closed)

    def _make_room_on_node(self) -> Iterator[PublishReport]:
        """Of what `run.checkpoint()` committed: files of others are the training's own, and shares are one part of a whole."""
        there = {c.step: c for c in self._watcher.ready(now=self._clock.now()) if c.made_by == "sdk" and c.folder and c.step is not None}
        for step in may_go_unpublished(list(there), self._rule):
            self._drop(there[step])
            yield PublishReport(kind="skipped", step=step, reason="the store takes nothing, and two newer ones wait on the node")

    def _may_skip(self, steps: Steps, *, closed: bool) -> list[int]:
        newest = max(self._published, default=-1)
        return may_skip(steps, self._rule, closed=closed, newest=newest, published=len(self._published))

    def _refuse(self, step: int, lacks: str, *, last_save: bool = False) -> Iterator[PublishReport]:
        if step not in self._refused:
            self._refused.add(step)
            what = "what the training saved last" if last_save else f"the checkpoint of step {step}"
            yield PublishReport(kind="refused", step=step, reason=f"{what} is incomplete and was not published: {lacks}")

    @property
    def waits_for_room(self) -> bool:
        """The store was full when it was last tried, and is tried again later."""
        return self._room.waiting

    @property
    def waits_for_shares(self) -> bool:
        return incomplete(self._store, leg=self._leg)

    def _gather(self, folder: Path, *, closed: bool) -> Iterator[PublishReport]:
        """Put this node's shares into the store, and publish what the shares of all nodes make complete.

        While the training runs, those of one step at a look: when it has left, the newest are next.
        """
        hurry = closed or self._newest_first
        tried: set[Path] = set()
        while todo := next_shares([share for share in shares(folder) if share.folder not in tried], hurry=hurry):
            tried.update(share.folder for share in todo)
            yield from self._put(todo)
            yield from self._assemble(closed=closed)
            if not hurry or not self._may_try():
                return
        yield from self._assemble(closed=closed)

    def _assemble(self, *, closed: bool) -> Iterator[PublishReport]:
        began = self._clock.now()
        if began < self._look_for_shares_at and not closed:
            return
        waits = self.waits_for_shares
        self._look_for_shares_at = began + (_LOOK_FOR_SHARES if waits else _EXPECTING_NONE)
        if not waits:
            return
        try:
            self._progress()
        except OSError as error:
            log.warning("logs and metrics cannot be stored: %s", error)
            return
        for gathered in assemble(self._store, leg=self._leg, created=began, fenced=self._fenced):
            if isinstance(gathered, NotGathered):
                yield from self._not_gathered(gathered)
                continue
            manifest = gathered.manifest
            self._published.add(manifest.step)
            self._last_step = max(manifest.step, self._last_step)
            yield PublishReport(
                kind="published",
                step=manifest.step,
                bytes=manifest.bytes,
                save_seconds=gathered.save_seconds,
                stage_seconds=gathered.stage_seconds + self._clock.now() - began,
                began=gathered.began,
            )
            delete_old(self._store, self._rule, leg=self._leg)

    def _put(self, todo: Sequence[CheckpointShare]) -> Iterator[PublishReport]:
        for share in todo:
            if not self._may_try():
                return
            try:
                put_share(share, self._store, leg=self._leg, clock=self._clock, moved=self._moved)
                self._room.succeeded()
                self._look_for_shares_at = 0.0
            except SourceChanged:
                continue
            except StorageFull as error:
                self._is_full(error)
                yield PublishReport(kind="missed", step=share.step, save_seconds=share.seconds, reason=str(error))
            except StorageError as error:
                yield PublishReport(kind="missed", step=share.step, save_seconds=share.seconds, reason=str(error))

    def last_words(self) -> Iterator[PublishReport]:
        """Nothing more comes: what of the ranks' shares makes no checkpoint."""
        for found in lacking(self._store, leg=self._leg):
            yield from self._not_gathered(found)

    def _not_gathered(self, found: NotGathered) -> Iterator[PublishReport]:
        if found.later:
            yield PublishReport(kind="missed", step=found.step, reason=found.reason)
        elif found.step not in self._refused:
            self._refused.add(found.step)
            yield PublishReport(kind="refused", step=found.step, reason=found.reason)

    def _may_try(self) -> bool:
        return self._room.may_try(self._clock.now(), free=free_bytes(self._store) if self._room.waiting else None)

    def _is_full(self, error: StorageFull) -> None:
        self._full = error
        self._room.failed(self._clock.now(), need=error.need, free=free_bytes(self._store))

    def _not_tried(self, candidate: Candidate) -> PublishReport | None:
        """The store is left alone for a while: the step counts as missed all the same, once."""
        if candidate.fingerprint in self._told_full:
            return None
        self._told_full.add(candidate.fingerprint)
        step = self._last_step + 1 if candidate.step is None else candidate.step
        return PublishReport(kind="missed", step=step, save_seconds=candidate.save_seconds, reason=str(self._full))

    def _carry(self, candidate: Candidate) -> PublishReport | None:
        if not self._may_try():
            return self._not_tried(candidate)
        began = self._clock.now()
        if candidate.made_by == "files" and self._waits_for_word(began):
            return None
        try:
            logged, values = self._progress()
        except OSError as error:
            self._takes_nothing = True
            step = self._last_step + 1 if candidate.step is None else candidate.step
            return PublishReport(
                kind="missed", step=step, save_seconds=candidate.save_seconds, reason=f"logs and metrics cannot be stored: {error}"
            )
        step = self._step_for(candidate, logged)
        metrics = candidate.metrics or {key: value for key, value in values.items() if math.isfinite(value)}
        if candidate.made_by == "files" and self._shares and self._nodes > 1:
            others = node_files.read_node_notes(self._store, self._leg)
            if node_files.why_unmatched(others, candidate) or any(said.numbered for said in others):
                return self._share(candidate, others, step, self._shares, metrics)
        size = sum(size for _, size, _ in candidate.fingerprint)
        self._announce(PublishReport(kind="publishing", step=step, bytes=size, save_seconds=candidate.save_seconds))
        try:
            manifest = publish(
                candidate.sources,
                self._store,
                CheckpointName(self._leg, step),
                created=began,
                made_by=candidate.made_by,
                metrics=metrics,
                unchanged=lambda: self._watcher.unchanged(candidate),
                replace=candidate.made_by != "sdk" and not self._has(candidate, step),
                moved=self._moved,
                fenced=self._fenced,
            )
        except SourceChanged:
            self._watcher.not_taken(candidate)
            return None  # not complete after all: seen again later
        except StorageError as error:
            self._takes_nothing = True
            if isinstance(error, StorageFull):
                self._is_full(error)
                self._told_full.add(candidate.fingerprint)
            return PublishReport(kind="missed", step=step, save_seconds=candidate.save_seconds, reason=str(error))
        self._room.succeeded()
        self._takes_nothing = False
        self._published.add(step)
        self._last_step = max(step, self._last_step)
        if candidate.step is None:
            self._unnumbered_step = step
        return PublishReport(
            kind="published",
            step=step,
            bytes=manifest.bytes,
            save_seconds=candidate.save_seconds,
            stage_seconds=self._clock.now() - began,
            began=max((mtime for _, _, mtime in candidate.fingerprint), default=0) / 1e9 - candidate.save_seconds,
        )

    def _has(self, candidate: Candidate, step: int) -> bool:
        """Published as it is by a publisher of this leg before this one: its files are older than that, and as long."""
        if candidate.again:
            return False
        try:
            manifest = read_manifest(self._store / str(CheckpointName(self._leg, step)))
        except CheckpointDamaged:
            return False
        sizes = {name: entry.size for name, entry in manifest.files.items()}
        return all(sizes.get(name) == size and mtime / 1e9 < manifest.created for name, size, mtime in candidate.fingerprint)

    def _waits_for_word(self, now: float) -> bool:
        """The first time in a leg, other nodes get a while to begin with files of their own, and to say so."""
        if self._nodes < 2 or not self._shares:
            return False
        if self._hear_others_until is None:
            self._hear_others_until = now + _SILENT_NODE
        return now < self._hear_others_until and not self._closed

    def _share(
        self, candidate: Candidate, others: list[node_files.NodeFiles], step: int, folder: Path, metrics: Mapping[str, float]
    ) -> PublishReport | None:
        """Other nodes write files too: what is here is one part of the whole, which is published once all are in the store."""
        why = node_files.why_unmatched(others, candidate)
        if not why and candidate.again:
            why = "files on the first node changed after it was published; the published version stays"
        if why:
            self._watcher.done_with(candidate)
            return next(self._refuse(step, why), None)
        try:
            node_files.make_share(candidate, step, folder, node=0, nodes=self._nodes, metrics=metrics)
            writing = {said.node for said in others if said.numbered}
            without = [node for node in range(1, self._nodes) if node not in writing]
            node_files.make_empty_shares(step, folder, without, nodes=self._nodes)
        except OSError as error:
            return PublishReport(kind="missed", step=step, reason=f"the files of step {step} cannot be shared on this node: {error}")
        self._watcher.done_with(candidate)
        return None

    def _speak_for_nodes_without_files(self, folder: Path, *, closed: bool) -> None:
        """Only other nodes wrote files of a step: after a while, or in the end, it is whole without this one."""
        now = self._clock.now()
        if self._nodes < 2 or (now < self._speak_at and not closed):
            return
        self._speak_at = now + _SPEAK_EVERY
        writing = {said.node for said in node_files.read_node_notes(self._store, self._leg) if said.numbered}
        for found in node_files.waiting_steps(self._store, self._leg):
            if 0 in found.there or self._watcher.has_step(found.step):
                continue
            if closed or now - found.since >= _SILENT_NODE:
                without = [node for node in range(self._nodes) if node not in found.there and node not in writing]
                try:
                    node_files.make_empty_shares(found.step, folder, without, nodes=self._nodes)
                except OSError as error:
                    log.warning("cannot record that the first node has no files of step %d: %s", found.step, error)

    def _step_for(self, candidate: Candidate, logged: int | None) -> int:
        """The step the training named; for files that name none, the one it logged, or the next that is free.

        A later version of a checkpoint takes its place. Files of an old step that are written again are a new one.
        """
        if candidate.made_by == "sdk" and candidate.step is not None:
            return candidate.step
        if candidate.step is not None:
            old = candidate.rewritten and candidate.step in self._published and candidate.step < self._last_step
            return self._last_step + 1 if old else candidate.step
        if candidate.again and self._unnumbered_step is not None:
            return self._unnumbered_step
        return logged if logged is not None and logged > self._last_step else self._last_step + 1

    def _drop(self, candidate: Candidate) -> None:
        self._watcher.done_with(candidate)
        if candidate.folder:
            shutil.rmtree(candidate.folder, ignore_errors=True)
