"""Where a batch script's author expects what it prints: the scheduler's own file names, filled in and written beside the run's logs.

The training writes to the node's disk; from there its lines are appended to these files a second later. A target that
is full or cannot be made is told of once and tried again: it never holds up the training.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onward.model import event as ev
from onward.model.spec import RunSpec
from onward.rundir.layout import LegLocal
from onward.supervisor.scene import Scene
from onward.supervisor.surroundings import working_folder

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_NO_ARRAY = 4294967294  # what Slurm writes for the task of a job that is none of an array
_SLURM = re.compile(r"%(\d*)([%A-Za-z])")
_GRIDENGINE = re.compile(r"\$(?:\{(\w+)\}|(HOME|USER|JOB_ID|JOB_NAME|HOSTNAME|TASK_ID|SGE_TASK_ID))")
_NOWHERE = ("/dev/null", "none")
_write = os.write


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the patterns stand for in one job."""

    job: str
    name: str
    node: str
    user: str
    task: int | None = None


def slurm_name(pattern: str, job: Words) -> str:
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


def gridengine_name(pattern: str, job: Words) -> str:
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
    words = Words(job=job, name=script.job_name, node=node, user=spec.user, task=script.task)
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


def together(spec: RunSpec) -> bool:
    """Whether both streams go to one file: then they do in the run's own log too, so that their lines keep their order."""
    outputs = spec.outputs
    return outputs is not None and spec.script is not None and (outputs.err is None or outputs.err == outputs.out)


def output_files(scene: Scene, local: LegLocal) -> OutputFiles:
    """For this leg. Each job has files of its own, by its id; names without one go on from leg to leg."""
    spec, leg = scene.spec, scene.leg
    folder = working_folder(spec, scene.dir)
    found = targets(spec, job=scene.allocation.job, node=scene.allocation.hosts[0], folder=folder)

    def warn(text: str) -> None:
        log.warning("%s", text)
        scene.journal.write(ev.Warned(leg=leg, at=scene.clock.now(), text=text))

    fresh = leg == 1 and not (spec.outputs and spec.outputs.append)
    return OutputFiles(pairs=[(local.log(leg, stream), path) for stream, path in found.items()], fresh=fresh, warn=warn)


@dataclass(kw_only=True)
class OutputFiles:
    """Appends what the logs on the node have more to the files their author expects."""

    pairs: Sequence[tuple[Path, Path]]  # log on the node, file
    fresh: bool  # what an earlier job left in them is overwritten
    warn: Callable[[str], None]
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
                        self.warn(f"output cannot be written to {target}: {error.strerror or error}; it is in the run's folder")
        finally:
            self._busy.release()

    def _append(self, source: Path, target: Path) -> None:
        first = target not in self._carried
        if not first and source.stat().st_size <= self._carried[target]:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = os.O_TRUNC if first and self.fresh else os.O_APPEND
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | mode, 0o644)
        self._carried.setdefault(target, 0)
        try:
            with source.open("rb") as reading:
                reading.seek(self._carried[target])
                while chunk := reading.read(_CHUNK):
                    written = 0
                    while written < len(chunk):  # counted piece by piece: a disk that fills up takes a part
                        taken = _write(handle, chunk[written:])
                        written += taken
                        self._carried[target] += taken
        finally:
            os.close(handle)
