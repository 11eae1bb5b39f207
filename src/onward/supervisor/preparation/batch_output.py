"""Where a batch script's author expects what it prints: the scheduler's own file names, filled in and written beside the run's logs.

The training writes to the node's disk; from there its lines are appended to these files within a few seconds. A target that
is full or cannot be made is told of once and tried again: it never holds up the training.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onward.model import events as ev
from onward.model.spec import RunSpec
from onward.rundir.files.growing import copy_growth
from onward.rundir.layout import LegLocal
from onward.supervisor.leg.context import LegContext
from onward.supervisor.preparation.environment import working_folder

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_LOOK_AGAIN = 60.0  # seconds after which a file that is open is looked at: it may have been removed or replaced
_NO_ARRAY = 4294967294  # what Slurm writes for the task of a job that is none of an array
_SLURM = re.compile(r"%(\d*)([%A-Za-z])")
_GRIDENGINE = re.compile(r"\$(?:\{(\w+)\}|(HOME|USER|JOB_ID|JOB_NAME|HOSTNAME|TASK_ID|SGE_TASK_ID))")
_NOWHERE = ("/dev/null", "none")
_write = os.write


@dataclass(frozen=True, kw_only=True)
class FileNameFields:
    """What the patterns stand for in one job."""

    job: str
    name: str
    node: str
    user: str
    task: int | None = None


def slurm_name(pattern: str, job: FileNameFields) -> str:
    """`%x-%j.out` filled in. A backslash in it keeps every % as it is, as with sbatch."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    words = {"%": "%", "j": job.job, "J": job.job, "A": job.job, "x": job.name, "u": job.user, "N": job.node.split(".")[0]}
    words |= {"n": "0", "t": "0", "s": "batch", "a": str(_NO_ARRAY if job.task is None else job.task), "b": str((job.task or 0) % 10)}

    def put(match: re.Match[str]) -> str:
        width, letter = match.groups()
        if letter not in words:
            return match[0]
        padded = width and words[letter].isdigit() and letter not in "xuN"
        return words[letter].zfill(min(int(width), 10)) if padded else words[letter]

    return _SLURM.sub(put, pattern)


def gridengine_name(pattern: str, job: FileNameFields) -> str:
    """`$JOB_NAME.o$JOB_ID` filled in; a leading ~ is the home folder."""
    home = os.path.expanduser("~")
    task = "undefined" if job.task is None else str(job.task)
    words = {"HOME": home, "USER": job.user, "JOB_ID": job.job, "JOB_NAME": job.name, "HOSTNAME": job.node}
    words |= {"TASK_ID": task, "SGE_TASK_ID": task}
    text = f"$HOME{pattern[1:]}" if pattern.startswith("~/") else pattern
    return _GRIDENGINE.sub(lambda match: words.get(match[1] or match[2], match[0]), text)


def targets(spec: RunSpec, *, job: str, node: str, folder: Path) -> Mapping[str, Path]:
    """The file of each stream that has one: `err` only where it is not written together with `out`."""
    if spec.outputs is None or spec.script is None:
        return {}
    script = spec.script
    words = FileNameFields(job=job, name=script.job_name, node=node, user=spec.user, task=script.task)
    found: dict[str, Path] = {}
    for stream, pattern in (("out", spec.outputs.out), ("err", spec.outputs.err)):
        if not pattern or pattern in _NOWHERE:
            continue
        if script.family == "slurm":
            found[stream] = folder / slurm_name(pattern, words)
            continue
        path = folder / gridengine_name(pattern, words)
        if pattern.endswith("/") or path.is_dir():
            task = f".{script.task}" if script.task is not None else ""
            path = path / f"{script.job_name}.{stream[0]}{job}{task}"
        found[stream] = path
    if found.get("out") == found.get("err"):
        found.pop("err", None)
    return found


def share_one_file(spec: RunSpec) -> bool:
    """Whether both streams go to one file: then they do in the run's own log too, so that their lines keep their order."""
    outputs = spec.outputs
    return outputs is not None and spec.script is not None and (outputs.err is None or outputs.err == outputs.out)


def output_files(context: LegContext, local: LegLocal) -> OutputFiles:
    """For this leg. Each job has files of its own, by its id; names without one go on from leg to leg."""
    spec, leg = context.spec, context.leg
    folder = working_folder(spec, context.dir)
    found = targets(spec, job=context.allocation.job, node=context.allocation.hosts[0], folder=folder)

    def warn(text: str) -> None:
        log.warning("%s", text)
        context.journal.write(ev.Warned(leg=leg, at=context.clock.now(), text=text))

    fresh = leg == 1 and not (spec.outputs and spec.outputs.append)
    return OutputFiles(pairs=[(local.log(leg, stream), path) for stream, path in found.items()], fresh=fresh, warn=warn)


@dataclass(kw_only=True)
class OutputFiles:
    """Appends what the logs on the node have more to the files their author expects."""

    pairs: Sequence[tuple[Path, Path]]  # log on the node, file
    fresh: bool  # what an earlier job left in them is overwritten
    warn: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _open: dict[Path, _Open] = field(default_factory=dict)
    _carried: dict[Path, int] = field(default_factory=dict)
    _failed: set[Path] = field(default_factory=set)
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def carry(self, *, within: float = -1) -> None:
        """Called by one thread again and again, and once more at the end: then with a time after which a file that hangs is let be."""
        if not self._busy.acquire(timeout=within):
            return
        try:
            for source, target in self.pairs:
                try:
                    self._append(source, target)
                    self._failed.discard(target)
                except OSError as error:
                    if target not in self._failed:
                        self._failed.add(target)
                        self.warn(f"output cannot be written to {target}: {error.strerror or error}; it is only in the run's folder")
        finally:
            self._busy.release()

    def _append(self, source: Path, target: Path, *, again: bool = True) -> None:
        first = target not in self._carried
        size = source.stat().st_size
        if not first and size <= self._carried[target]:
            return
        handle = self._handle(target, fresh=first and self.fresh)
        self._carried.setdefault(target, 0)
        try:
            for taken in copy_growth(source, self._carried[target], size, lambda data, _: _write(handle, data), piece=_CHUNK):
                self._carried[target] += taken  # piece by piece: a disk that fills up takes a part
        except OSError as error:
            self._close(target)
            if error.errno != errno.ESTALE or not again:
                raise
            self._append(source, target, again=False)  # the server no longer knows the file that we had open

    def _handle(self, target: Path, *, fresh: bool) -> int:
        """Kept open, so that shared storage is not asked for it each time; now and then it is looked whether it is still that file."""
        now = self.now()
        if target in self._open and now - self._open[target].looked > _LOOK_AGAIN:
            try:
                seen = os.stat(target)
            except FileNotFoundError:
                seen = None
            if seen is None or (seen.st_dev, seen.st_ino) != self._open[target].identity:
                self._close(target)
            else:
                self._open[target].looked = now
        if target not in self._open:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND | os.O_DSYNC | (os.O_TRUNC if fresh else 0)
            target.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(target, flags, 0o644)
            seen = os.fstat(handle)
            self._open[target] = _Open(handle=handle, identity=(seen.st_dev, seen.st_ino), looked=now)
        return self._open[target].handle

    def _close(self, target: Path) -> None:
        opened = self._open.pop(target, None)
        if opened:
            with contextlib.suppress(OSError):
                os.close(opened.handle)

    def close(self) -> None:
        for target in list(self._open):
            self._close(target)


@dataclass(kw_only=True)
class _Open:
    handle: int
    identity: tuple[int, int]
    looked: float
