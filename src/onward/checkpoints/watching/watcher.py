"""Watch the folder a training saves into, and tell which checkpoints are complete.

A folder made by `run.checkpoint()` is complete at once: it carries a commit mark and appeared by rename. Of anything else
(files or folders a training writes by itself), entries with the same number in their names (`model_100.pt`, `optim_100.pt`)
make one checkpoint. It is complete by the last act of its framework, where that is known (`watching/frameworks.py`); else
when its files are closed and quiet and none is missing that earlier saves had (`watching/decision.py`). Where nothing has a
number, the whole folder is one checkpoint, which each save writes again (`watching/rounds.py`).

Entries without a number beside numbered ones (`config.json`, `best.pt`) go with each as they are (`watching/beside.py`). They
make no checkpoint by themselves; those written after the last numbered one are carried with it once the training has gone.
Files that grow all the time are never waited for. Logs and unfinished names are no part of any checkpoint.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.candidate import Candidate
from onward.checkpoints.watching.committed import committed, fingerprint_of
from onward.checkpoints.watching.completeness import Completeness, SaveObservation, continues, numbered, unnumbered
from onward.checkpoints.watching.folder_look import FolderLook
from onward.checkpoints.watching.frameworks import POINTERS, StepListing
from onward.checkpoints.watching.listing import FileVersion, Fingerprint, entries
from onward.checkpoints.watching.save_pattern import SavePattern
from onward.checkpoints.watching.save_rounds import SaveRounds
from onward.checkpoints.watching.unnumbered_files import UnnumberedFiles

__all__ = ["Candidate", "SaveWatcher"]

_SHARE_OF_TIME = 0.05  # that looking may take
_SETTLED = 60.0  # seconds: old checkpoints that have been dealt with are looked into again after this


class SaveWatcher:
    overdue_after = 10.0  # seconds without a complete checkpoint: saves may follow each other so fast that none of them ever rests

    def __init__(
        self, folder: Path, *, quiet_seconds: float = 2.0, part: bool = False, timer: Callable[[], float] = time.monotonic
    ) -> None:
        """`part`: this is another node than the first, where only some of a checkpoint's files are written."""
        self._folder = folder
        self._quiet = quiet_seconds
        self._part = part
        self._timer = timer
        self._habits = SavePattern(quiet_seconds)
        self._rounds = SaveRounds()
        self._beside = UnnumberedFiles(quiet_seconds)
        self._dealt: dict[int, Fingerprint] = {}  # by step
        self._largest: dict[int, frozenset[str]] = {}  # the files that those not dealt with had at the last look
        self._names_steps = False  # some file had a number: then those without one are no checkpoint by themselves
        self._found: set[int | None] = set()  # those dealt with that this watcher has found itself
        self._committed: set[Fingerprint] = set()
        self._settled: dict[int, tuple[str, ...]] = {}
        self._full_look_at = -math.inf
        self._began = 0.0  # the last look, by the timer
        self._done_at: float | None = None
        self._open: frozenset[str] = frozenset()  # when it was last asked, while the training was there
        self.rest = 0.0  # seconds until the next look, so that looking takes little of the time
        self.incomplete: list[tuple[int | None, str]] = []  # of the last look, the training gone: step, and what is missing
        self.new_steps: list[int] = []  # of the last look: those with files that have not been dealt with
        self.new_plain: list[str] = []  # and files without a number that were written since

    def ignore_present(self, *, before: float = math.inf, all_here: bool = True) -> None:
        """What is there now, and was written before this moment, came from a checkpoint: it is not new.

        `all_here`: this node writes all files of a checkpoint, so that those tell what belongs to the next.
        """
        look = self._look(0.0, closed=False)
        for step, own in look.own.items():
            if all(self._is_older(seen, before) for seen in own):
                self._dealt[step] = own
        if self._dealt and all_here:
            newest = max(self._dealt)
            self._habits.learn(_kinds(newest, self._dealt[newest]), ())
        self._names_steps = bool(look.steps)
        older = [seen for seen in look.plain if self._is_older(seen, before)]
        self._beside.begin_with(older)
        if not look.steps:
            self._rounds.begin_with(self._beside.lasting(older), as_a_round=all_here)

    def _is_older(self, seen: FileVersion, before: float) -> bool:
        return seen[2] / 1e9 < before

    def ready(self, *, now: float, closed: bool = False, killed: bool = False) -> list[Candidate]:
        """Complete checkpoints not yet dealt with, oldest first. `closed`: the training has gone, so nothing is open.

        `killed`: it was killed at `now`, so that only what was over by then, or says itself that it is whole, is complete.
        """
        self._began = self._timer()
        self._done_at = self._began if self._done_at is None else self._done_at
        look = self._look(now, closed=closed, were_open=self._open if killed else None)
        found = [candidate for path in look.committed if (candidate := committed(path)) and candidate.fingerprint not in self._committed]
        found.sort(key=lambda candidate: candidate.step or 0)
        self.incomplete, self.new_steps, self.new_plain = [], [], []
        self._names_steps = self._names_steps or bool(look.steps)
        if look.steps and (closed or not math.isinf(self._quiet)):
            found += self._numbered(look)
        elif not self._names_steps and (closed or not math.isinf(self._quiet)):
            found += self._unnumbered(look)
        if not closed and look.open_files is not None:
            self._open = look.open_files
        self.rest = (self._timer() - self._began) * (1 / _SHARE_OF_TIME - 1)
        return found

    def done_with(self, candidate: Candidate) -> None:
        """It has been published, or skipped for newer ones."""
        self._done_at = self._began
        if candidate.made_by == "sdk":
            self._committed.add(candidate.fingerprint)
            return
        if candidate.step is None:
            self._learn_round(candidate)
        else:
            self._learn_step(candidate.step, candidate)
            self._dealt[candidate.step] = candidate.fingerprint
            self._largest.pop(candidate.step, None)
            self._beside.went_with(candidate)
        self._found.add(candidate.step)

    def not_taken(self, candidate: Candidate) -> None:
        """It changed while it was copied. What lies beside it and changed is not to be in the way the next time."""
        self._done_at = self._began
        if candidate.made_by != "sdk":
            self._beside.moved(candidate, self._look(0.0, closed=False).plain)

    def unchanged(self, candidate: Candidate) -> bool:
        """Whether its files, and what points to it, are still as they were found."""
        if candidate.folder:
            return fingerprint_of(candidate.folder) == candidate.fingerprint
        look = self._look(0.0, closed=False)
        own = self._beside.lasting(look.plain) if candidate.step is None else look.own.get(candidate.step, ())
        pointers = {seen for seen in candidate.whole if seen[0] in POINTERS}
        return tuple(sorted(own)) == candidate.fingerprint and pointers <= set(look.plain)

    def has_step(self, step: int) -> bool:
        """Whether files of this step lie here."""
        return any(file_names.number(entry.name) == step for entry in entries(self._folder))

    def _look(self, now: float, *, closed: bool, were_open: frozenset[str] | None = None) -> FolderLook:
        rested = now - self._full_look_at < _SETTLED and not closed
        return FolderLook(self._folder, now=now, closed=closed, settled=self._settled if rested else {}, were_open=were_open)

    # ── files with a number ───────────────────────────────────────────────────

    def _numbered(self, look: FolderLook) -> list[Candidate]:
        self._forget_removed(look)
        self.new_plain = self._beside.new(look)
        if look.own.keys() == look.steps.keys():
            self._full_look_at, self._settled = look.now, {}
        found: list[Candidate] = []
        last, later = max(look.steps), -1
        for step in sorted(look.own, reverse=True):
            own = look.own[step]
            written = max(seen[2] for seen in own)
            if self._is_going(step, own):
                continue
            if self._dealt.get(step) != own:
                self.new_steps.append(step)
                found += self._judge(look, step, own, newer=later >= written)
            elif look.closed and step == last and self.new_plain:
                found += self._candidate(look, step, own)
            elif step != last and look.now - written / 1e9 >= _SETTLED:
                self._settled[step] = look.steps[step]
            later = max(later, written)
        self.incomplete.reverse()
        return found[::-1]

    def _judge(self, look: FolderLook, step: int, own: Fingerprint, *, newer: bool) -> list[Candidate]:
        sight = self._sight(look, step, own, newest=max(seen[2] for seen in own))
        answer = numbered(sight, _kinds(step, own), self._habits, newer=newer, rewritten=self._is_rewritten(step, own))
        return self._candidate(look, step, own) if self._is_yes(answer, step) else []

    def _candidate(self, look: FolderLook, step: int, own: Fingerprint) -> list[Candidate]:
        beside = self._beside.going_with(look, step, patience=self._habits.unsure_quiet)
        if beside is None:
            return []
        whole = tuple(sorted([*own, *beside]))
        return [self._files(step, own, whole, again=step in self._found, rewritten=self._is_rewritten(step, own))]

    def _is_rewritten(self, step: int, own: Fingerprint) -> bool:
        return step in self._dealt and not set(self._dealt[step]) <= set(own)

    def _is_going(self, step: int, own: Fingerprint) -> bool:
        """The training is removing it: files are missing that were there before, and there are none instead."""
        here = frozenset(seen[0] for seen in own)
        before = frozenset(seen[0] for seen in self._dealt[step]) if step in self._dealt else self._largest.get(step, frozenset())
        if here < before:
            return True
        if step not in self._dealt:
            self._largest[step] = here
        return False

    def _forget_removed(self, look: FolderLook) -> None:
        for step in self._dealt.keys() - look.steps.keys():
            del self._dealt[step]
            self._found.discard(step)
        for step in self._largest.keys() - look.steps.keys():
            del self._largest[step]

    def _learn_step(self, step: int, candidate: Candidate) -> None:
        before = self._dealt.get(step, ())
        new = [seen[2] for seen in candidate.fingerprint if seen not in set(before)]
        if candidate.again and new:
            gap = 0.0 if candidate.rewritten else (min(new) - max(seen[2] for seen in before)) / 1e9
            self._habits.learn_late(_kinds(step, candidate.fingerprint), gap)
        elif new:
            self._habits.learn(_kinds(step, candidate.fingerprint), [seen[2] / 1e9 for seen in candidate.fingerprint])

    # ── files without a number ────────────────────────────────────────────────

    def _unnumbered(self, look: FolderLook) -> Iterator[Candidate]:
        own = tuple(sorted(self._beside.lasting(look.plain)))
        self._rounds.look({seen[0]: seen for seen in own}, now=look.now)
        written = [seen for seen in own if seen[0] in self._rounds.written]
        self.new_plain = [seen[0] for seen in written]
        if not written:
            return
        sight = self._sight(look, None, own, newest=max(seen[2] for seen in written))
        if not self._is_yes(unnumbered(sight, self._rounds, self._habits), None):
            return
        lasting = set(own)
        resting = [seen for seen in look.plain if seen not in lasting and look.rests(seen, self._quiet)]
        again = None in self._found and continues(self._rounds)
        yield self._files(None, own, tuple(sorted([*own, *resting])), again=again, rewritten=False)

    def _learn_round(self, candidate: Candidate) -> None:
        again, pause = continues(self._rounds), self._rounds.pause
        if again and pause is not None:
            self._habits.learn_late(None, pause)
        written = [seen for seen in candidate.fingerprint if seen[0] in self._rounds.written and not file_names.may_stay(seen[0])]
        self._habits.learn_gaps(seen[2] / 1e9 for seen in written)
        self._rounds.publish(continued=again)

    # ── both ──────────────────────────────────────────────────────────────────

    def _sight(self, look: FolderLook, step: int | None, own: Fingerprint, *, newest: int) -> SaveObservation:
        return SaveObservation(
            listing=StepListing(step=step, files={name: written for name, _, written in own}, pointers=look.pointers),
            age=look.now - newest / 1e9,
            closed=look.closed,
            part=self._part,
            busy=lambda: look.busy(own),
            killed=look.killed,
            proven=lambda: look.proven(own),
            overdue=self._done_at is not None and self._began - self._done_at >= self.overdue_after,
        )

    def _is_yes(self, answer: Completeness, step: int | None) -> bool:
        if answer.lacks:
            self.incomplete.append((step, answer.lacks))
        return answer.ready

    def _files(self, step: int | None, own: Fingerprint, whole: Fingerprint, *, again: bool, rewritten: bool) -> Candidate:
        sources = {name: self._folder / name for name, _, _ in whole}
        return Candidate(step=step, sources=sources, fingerprint=own, whole=whole, made_by="files", again=again, rewritten=rewritten)


def _kinds(step: int, own: tuple[FileVersion, ...]) -> Counter[str]:
    return Counter(file_names.kind(name, step) for name, _, _ in own)
