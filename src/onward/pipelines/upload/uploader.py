"""Upload what is new of a pipeline: a process of its own, so that whatever hangs or breaks in it hurts no training.

Started again and again beside the pipeline's jobs, when it is over, and by `onward tend`; one at a time, and killed at any
moment the next goes on. What has arrived is noted with its checksums, a file a thing, by whoever is first.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from onward.clock import Clock, SystemClock
from onward.errors import NotDelivered, OnwardError
from onward.model.pipelines.plan import PipelinePlan, UploadRule
from onward.model.pipelines.upload import UploadTries, has_failed, is_due
from onward.model.plain_data import value_from_json, value_to_json
from onward.pipelines.advance import read_plan
from onward.pipelines.upload.destinations import Destination, checksums_of, destination_of
from onward.pipelines.upload.pending import UploadItem, pending_items
from onward.rundir.claim import take_file
from onward.rundir.pipeline.layout import PipelineDir
from onward.schedulers.command import run_command
from onward.sdk.atomic_files import write_whole
from onward.supervisor.background import Repeating

log = logging.getLogger(__name__)

_TARGET = "target"  # the key under which it is noted that nothing at all arrives
_CHECKSUMS = "checksums-"
_SIGN_OF_LIFE, _DEAD = 20.0, 120.0  # seconds
_SUMMARY_PATIENCE = 120.0


class PassEnd(IntEnum):
    """How one ended: the exit code of its process."""

    ALL = 0  # everything that there is by now has arrived
    LEFT = 1
    BUSY = 75  # another uploads just now


@dataclass(frozen=True, kw_only=True)
class UploadProgress:
    """How the uploads of a pipeline stand."""

    arrived: int
    waiting: int
    problems: tuple[str, ...] = ()  # what was tried as often as it should be, and why it did not arrive


@dataclass(kw_only=True)
class PipelineUpload:
    """One pass over all that is new."""

    dir: PipelineDir
    plan: PipelinePlan
    rule: UploadRule
    destination: Destination
    clock: Clock
    stubborn: bool = False  # goes on trying, ever more seldom, what others have given up
    said: list[str] = field(default_factory=list)

    def work(self) -> PassEnd:
        with lease(self.dir, self.clock) as ours:
            if not ours:
                return PassEnd.BUSY
            over = _over(self.dir)
            if over is not None and "summary" in self.rule.what:
                _summarise(self.dir)
            found = pending_items(self.dir, self.plan, self.rule, _arrived(self.dir))
            whole = self._all(found) if found else True
            if over is not None and whole and not has_all_arrived(self.dir):
                whole = self._seal(over)
            return PassEnd.ALL if whole else PassEnd.LEFT

    def _all(self, found: Sequence[UploadItem]) -> bool:
        if not self._due(_TARGET) or not any(self._due(thing.key) for thing in found if thing.paths):
            return False
        if (
            self._put(UploadItem(key=_TARGET, paths=(str(self.dir.plan.relative_to(self._root)),))) is None
        ):  # it is away: the things themselves have done nothing wrong
            return False
        self.dir.not_arrived(_TARGET).unlink(missing_ok=True)
        whole = True
        for thing in found:
            whole &= bool(thing.paths) and self._due(thing.key) and self._arrives(thing)
        return whole

    def _seal(self, over: float) -> bool:
        """The pipeline is over and everything is there: so are now the checksums, for whoever wants to look."""
        lines: dict[str, str] = {}
        for note in sorted(_notes(self.dir), key=lambda note: float(note["at"])):  # what was sent again, last
            lines.update(note["files"])
        text = "".join(_sum_line(name, digest) for name, digest in sorted(lines.items()))
        write_whole(self.dir.checksums, text.encode(errors="surrogateescape"))
        seal = UploadItem(key=f"{_CHECKSUMS}{over:.3f}", paths=(str(self.dir.checksums.relative_to(self._root)),))
        if not self._due(seal.key) or not self._arrives(seal):
            return False
        write_whole(self.dir.all_arrived, json.dumps({"over": over, "at": self.clock.now()}))
        self.said.append(f"everything has arrived at {self.rule.to}")
        return True

    def _arrives(self, thing: UploadItem) -> bool:
        sums = self._put(thing)
        if sums is None:
            return False
        take_file(
            self.dir.arrived(thing.key), json.dumps({"paths": thing.paths, "files": sums, "to": self.rule.to, "at": self.clock.now()})
        )
        self.dir.not_arrived(thing.key).unlink(missing_ok=True)
        self.said.append(f"{thing.key} has arrived")
        return True

    def _put(self, thing: UploadItem) -> Mapping[str, str] | None:
        """The checksums of what is there now; None, and a note of it, where it is not."""
        try:
            sums = checksums_of(self._root, thing.paths)
            self.destination.put(self._root, thing.paths, sums)
            return sums
        except (NotDelivered, OSError) as error:
            before = failed_attempts(self.dir, thing.key)
            now = UploadTries(count=(before.count if before else 0) + 1, at=self.clock.now(), reason=str(error))
            write_whole(self.dir.not_arrived(thing.key), json.dumps(value_to_json(now)))
            self.said.append(f"{thing.key} did not arrive, try {now.count}: {error}")
            return None

    def _due(self, key: str) -> bool:
        return _due(self.dir, key, self.rule, now=self.clock.now(), stubborn=self.stubborn)

    @property
    def _root(self) -> Path:
        return self.dir.path.parent


# ── what is noted ─────────────────────────────────────────────────────────────


def upload_progress(dir: PipelineDir, plan: PipelinePlan) -> UploadProgress | None:
    """None where nothing is to be uploaded. Only reads."""
    if plan.upload is None or not dir.uploads.is_dir():
        return None
    arrived = _arrived(dir)
    left = pending_items(dir, plan, plan.upload, arrived)
    problems = []
    for key in (_TARGET, *(thing.key for thing in left)):
        failures = failed_attempts(dir, key)
        if failures and has_failed(failures, retries=plan.upload.retries):
            what = f"nothing can be uploaded to {plan.upload.to}" if key == _TARGET else f"{key} cannot be uploaded"
            times = "once" if failures.count == 1 else f"{failures.count} times"
            problems.append(f"{what}, tried {times}: {failures.reason}")
    return UploadProgress(arrived=len(arrived), waiting=len(left), problems=tuple(problems))


def has_work(dir: PipelineDir, plan: PipelinePlan, rule: UploadRule, *, now: float, stubborn: bool = False) -> bool:
    """Whether a pass now would try something. Only reads."""
    if not _due(dir, _TARGET, rule, now=now, stubborn=stubborn):
        return False
    found = pending_items(dir, plan, rule, _arrived(dir))
    if not found:
        return dir.over.exists() and not has_all_arrived(dir)
    return any(_due(dir, thing.key, rule, now=now, stubborn=stubborn) for thing in found if thing.paths)


def _due(dir: PipelineDir, key: str, rule: UploadRule, *, now: float, stubborn: bool) -> bool:
    return is_due(failed_attempts(dir, key), now=now, retries=rule.retries, stubborn=stubborn)


def failed_attempts(dir: PipelineDir, key: str) -> UploadTries | None:
    try:
        return value_from_json(UploadTries, json.loads(dir.not_arrived(key).read_bytes()))
    except (FileNotFoundError, ValueError):
        return None


def has_all_arrived(dir: PipelineDir) -> bool:
    """Everything of a pipeline that is over; not any more once it was made to go on."""
    try:
        return bool(json.loads(dir.all_arrived.read_bytes())["over"] == _over(dir))
    except (FileNotFoundError, ValueError):
        return False


def _arrived(dir: PipelineDir) -> set[str]:
    return {name.removesuffix(".json") for name in os.listdir(dir.uploads) if name.endswith(".json") and name[0] != "."}


def _notes(dir: PipelineDir) -> list[dict[str, Any]]:
    return [json.loads(dir.arrived(key).read_bytes()) for key in _arrived(dir) if not key.startswith(_CHECKSUMS)]


def _sum_line(name: str, digest: str) -> str:
    """As sha256sum writes it: names that would break its lines are marked."""
    plain = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if plain == name else chr(92)}{digest}  {plain}\n"


def _over(dir: PipelineDir) -> float | None:
    try:
        return float(json.loads(dir.over.read_bytes())["at"])
    except FileNotFoundError:
        return None


def is_summarised(dir: PipelineDir) -> bool:
    """Since it was over."""
    summary = dir.summary("json")
    return summary.exists() and summary.stat().st_mtime >= dir.over.stat().st_mtime


def _summarise(dir: PipelineDir) -> None:
    """By the Onward that this Python has, if it has one: a table needs more than a job carries. Else `onward tend` does it."""
    if is_summarised(dir):
        return
    try:
        answer = run_command(
            (sys.executable, "-E", "-P", "-m", "onward.operations.pipelines.summary", str(dir.path)), timeout=_SUMMARY_PATIENCE
        )
    except OnwardError as error:
        log.info("`onward tend` will write the summary: %s", error)
        return
    if answer.code:
        log.info("`onward tend` will write the summary: %s", answer.err.rpartition("\n")[2])


# ── one at a time ─────────────────────────────────────────────────────────────


@contextmanager
def lease(dir: PipelineDir, clock: Clock) -> Iterator[bool]:
    """Whether it is ours. It spares work, no more: should two upload at once after all, the same arrives."""
    me = {"host": socket.gethostname(), "pid": os.getpid()}
    ours = take_file(dir.uploader, json.dumps(me))
    if not ours and _is_dead(dir, clock):
        dir.uploader.unlink(missing_ok=True)
        ours = take_file(dir.uploader, json.dumps(me))
    if not ours:
        yield False
        return
    alive = Repeating("recording that it uploads", lambda: os.utime(dir.uploader), every=_SIGN_OF_LIFE)
    try:
        yield True
    finally:
        alive.stop()
        dir.uploader.unlink(missing_ok=True)


def _is_dead(dir: PipelineDir, clock: Clock) -> bool:
    try:
        owner = json.loads(dir.uploader.read_bytes())
        if clock.now() - dir.uploader.stat().st_mtime > _DEAD:
            return True
        if owner.get("host") != socket.gethostname():
            return False
        os.kill(int(owner["pid"]), 0)
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (PermissionError, ValueError, KeyError):
        return False
    return False


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz upload PIPELINE [stubborn]`: one pass."""
    if len(argv) not in (1, 2):
        sys.stderr.write("usage: supervisor.pyz upload PIPELINE_FOLDER [stubborn]\n")
        return 2
    os.nice(10)
    dir = PipelineDir(Path(argv[0]))
    plan = read_plan(dir)
    if plan.upload is None:
        return PassEnd.ALL
    one = PipelineUpload(
        dir=dir, plan=plan, rule=plan.upload, destination=destination_of(plan.upload.to), clock=SystemClock(), stubborn=len(argv) == 2
    )
    try:
        return one.work()
    finally:
        for words in one.said:
            sys.stdout.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n")
