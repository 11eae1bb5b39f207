"""Mirror append-only files from the node's disk to the run's folder, so that training never waits for shared storage."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.files import write_all

_CHUNK = 1 << 20


class LogsNotCarried(OSError):
    """All records were carried over; of logs or TensorBoard files something was not."""


def carry(local: LegLocal, run: RunDir) -> None:
    """Logs, spool and TensorBoard files of a leg. The supervisor and its stager both call this: one at a time.

    What cannot be carried over keeps nothing else back. Raises what was in the way of the records, else LogsNotCarried.
    """
    with local.mirror_lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # on the node's own disk
        troubles: list[OSError] = []
        for source, target in ((local.spool, run.spool), (local.logs, run.logs), (local.tensorboard, run.tensorboard)):
            try:
                mirror_tree(source, target)
            except OSError as error:
                troubles.append(error if source == local.spool else LogsNotCarried(str(error)))
        if troubles:
            raise troubles[0]


def mirror_tree(source: Path, target: Path) -> int:
    """Append to each file under `target` what its twin under `source` has more. Returns the bytes carried over.

    Holds no state: where the target ends is where to go on. So a successor on the same node can carry over what a
    killed leg left behind. A file in trouble is raised when all others have been carried over.
    """
    carried = 0
    trouble: OSError | None = None
    for folder, _, names in os.walk(source):
        there = target / Path(folder).relative_to(source)
        for name in names:
            try:
                carried += _append_rest(Path(folder) / name, there / name)
            except OSError as error:
                trouble = trouble or error
    if trouble:
        raise trouble
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
