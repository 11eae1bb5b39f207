"""Mirror append-only files from the node's disk to the run's folder, so that training never waits for shared storage."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.files import write_all

_CHUNK = 1 << 20


def carry(local: LegLocal, run: RunDir) -> None:
    """Logs, spool and TensorBoard files of a leg. The supervisor and its stager both call this: one at a time."""
    with local.mirror_lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # on the node's own disk
        for source, target in ((local.spool, run.spool), (local.logs, run.logs), (local.tensorboard, run.tensorboard)):
            mirror_tree(source, target)


def mirror_tree(source: Path, target: Path) -> int:
    """Append to each file under `target` what its twin under `source` has more. Returns the bytes carried over.

    Holds no state: where the target ends is where to go on. So a successor on the same node can carry over what a
    killed leg left behind.
    """
    carried = 0
    for folder, _, names in os.walk(source):
        there = target / Path(folder).relative_to(source)
        for name in names:
            carried += _append_rest(Path(folder) / name, there / name)
    return carried


def _append_rest(source: Path, target: Path) -> int:
    try:
        size = source.stat().st_size
    except FileNotFoundError:
        return 0
    try:
        have = target.stat().st_size
    except FileNotFoundError:
        have = 0
        target.parent.mkdir(parents=True, exist_ok=True)
    if size <= have:
        return 0
    carried = 0
    with source.open("rb") as reading:
        reading.seek(have)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            while chunk := reading.read(_CHUNK):
                write_all(handle, chunk)
                carried += len(chunk)
        finally:
            os.close(handle)
    return carried
