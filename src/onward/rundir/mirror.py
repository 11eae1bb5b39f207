"""Mirror append-only files from the node's disk to the run's folder, so that training never waits for shared storage.

A file in the run's folder is always a prefix of the one on the node: bytes are written at the place they have in the source. So two
processes may mirror the same file, and one that was killed is simply followed by the next. Files stay open between two passes, and every
write is on the server, and visible to other nodes, when it returns (O_DSYNC): a pass costs shared storage nothing but the data itself.

Logs and spools have their leg in their names. TensorBoard's files are named by the training, and a later leg may use a name again: its
file is then another, and has the leg after its name. It lies beside the first, since TensorBoard shows the files of a folder as one run.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from onward.rundir.event_files.search import link_event_files
from onward.rundir.files.growing import copy_growth
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.atomic_files import make_folder_in, write_whole

_CHUNK = 4 << 20
_TURN = 8 << 20  # bytes of one file before the next has its turn; the lock is held for no longer
_MOST_OPEN = 64
_COMPARED = 64 << 10  # bytes at either end of a file, to tell whether a copy is a copy of it
_TRUSTED = 15.0  # seconds after our last write to a file for which nobody else is expected to have written to it
_LOOK_AGAIN = 60.0  # seconds after which a file that is open is looked at: it may have been removed or replaced


class LogsNotCarried(OSError):
    """All records were carried over; of logs or TensorBoard files something was not."""


class Mirror:
    """Of one leg, in one process. The supervisor and its publisher have one each."""

    def __init__(self, local: LegLocal, run: RunDir, *, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = local.mirror_lock
        self._leg = local
        self._run = run.path
        self._records = (local.spool, run.spool)
        self._named_by_training = local.tensorboard
        self._logs = ((local.logs, run.logs), (local.tensorboard, run.tensorboard))
        self._now = now
        self._twins: dict[Path, GrowingCopy] = {}

    def carry(self, *, logs_at_most: int | None = None) -> int:
        """Carry over what is there now: records first, then logs and TensorBoard files. Returns the bytes.

        `logs_at_most`: bytes of the latter, for a caller that cannot wait for a log that is far behind. What cannot be carried over keeps
        nothing else back. Raises what was in the way of the records, else LogsNotCarried.
        """
        troubles: list[OSError] = []
        carried = self._carry_tree(*self._records, most=None, troubles=troubles)
        failed = len(troubles)
        left = logs_at_most
        for source, target in self._logs:
            taken = self._carry_tree(source, target, most=left, troubles=troubles)
            carried += taken
            left = None if left is None else max(left - taken, 0)
        if failed:
            raise troubles[0]
        if troubles:
            raise LogsNotCarried(str(troubles[0]))
        return carried

    def close(self) -> None:
        for twin in self._twins.values():
            twin.close()

    def _carry_tree(self, source: Path, target: Path, *, most: int | None, troubles: list[OSError]) -> int:
        """Turn by turn, so that a file that is far behind does not keep the others waiting."""
        waiting: list[tuple[GrowingCopy, int]] = []
        for path, size in _files(source):
            twin = self._twins.get(path)
            if twin is None:
                folder = target / path.relative_to(source)
                instead = mirror_path_beside(folder, self._leg) if source == self._named_by_training else None
                twin = self._twins[path] = GrowingCopy(path, folder, within=self._run, instead=instead)
            if size > twin.have:
                waiting.append((twin, size))
        carried = 0
        while waiting:
            again = []
            for twin, size in waiting:
                if most is not None and carried >= most:
                    return carried
                try:
                    carried += self._turn(twin, size)
                except FileNotFoundError as error:
                    if twin.source.exists():  # else it went away under our eyes
                        troubles.append(error)
                    continue
                except OSError as error:
                    troubles.append(error)
                    continue
                if twin.have < size:
                    again.append((twin, size))
            waiting = again
        return carried

    def _turn(self, twin: GrowingCopy, size: int) -> int:
        with self._lock.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # on the node's own disk
            if twin.handle < 0:
                self._make_room()
            return twin.append(size, now=self._now())

    def _make_room(self) -> None:
        opened = [twin for twin in self._twins.values() if twin.handle >= 0]
        if len(opened) >= _MOST_OPEN:
            min(opened, key=lambda twin: twin.written).close()


class GrowingCopy:
    """A file that grows, and its copy: always a prefix of it."""

    def __init__(self, source: Path, target: Path, *, within: Path, instead: Path | None) -> None:
        self._within = within  # no folder above this one is made
        self.source = source
        self.target = target
        self._instead = instead  # where the target is another file of the same name, of an earlier leg
        self.have = 0  # bytes of the copy
        self.handle = -1
        self.written = self._looked = 0.0
        self._identity = (0, 0)

    def append(self, size: int, *, now: float) -> int:
        """At most one turn's worth, up to `size`. Returns the bytes."""
        if self.handle >= 0 and (now - self.written > _TRUSTED or now - self._looked > _LOOK_AGAIN):
            self._look(now)
        if self.handle < 0:
            self._open(now)
        try:
            return self._append(size, now)
        except OSError as error:
            self.close()
            if error.errno != errno.ESTALE:
                raise OSError(error.errno, error.strerror, error.filename or str(self.target)) from error
        self._open(now)  # the server no longer knows the file that we had open
        return self._append(size, now)

    def catch_up(self, *, now: float) -> None:
        """With all that the file has now."""
        size = self.source.stat().st_size
        while self.have < size and self.append(size, now=now):
            pass

    def close(self) -> None:
        if self.handle >= 0:
            with contextlib.suppress(OSError):
                os.close(self.handle)
            self.handle = -1

    def _append(self, size: int, now: float) -> int:
        began = self.have
        until = min(size, began + _TURN)
        for taken in copy_growth(self.source, began, until, lambda data, at: _write_at(self.handle, data, at), piece=_CHUNK):
            self.have += taken
            self.written = now
        return max(self.have - began, 0)

    def _open(self, now: float) -> None:
        if self._instead and self.target != self._instead and not _is_beginning_of(self.target, self.source):
            self.target = self._instead
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_DSYNC
        try:
            self.handle = os.open(self.target, flags, 0o644)
        except FileNotFoundError:
            make_folder_in(self._within, self.target.parent)
            self.handle = os.open(self.target, flags, 0o644)
        self._take(os.fstat(self.handle), now)

    def _look(self, now: float) -> None:
        try:
            seen = os.stat(self.target)
        except FileNotFoundError:
            self.close()
            return
        if (seen.st_dev, seen.st_ino) != self._identity:
            self.close()
            return
        self._take(seen, now)

    def _take(self, seen: os.stat_result, now: float) -> None:
        self.have, self._identity, self._looked = seen.st_size, (seen.st_dev, seen.st_ino), now


def carry(local: LegLocal, run: RunDir) -> None:
    """Once, of a leg whose files are not mirrored all along."""
    link_event_files(local)
    mirror = Mirror(local, run)
    try:
        mirror.carry()
    finally:
        mirror.close()


def carry_untold(local: LegLocal, run: RunDir, leg: int) -> bool:
    """Bring what the leg could not say at its end. Returns whether there was something that is new."""
    try:
        names = local.untold.read_bytes()
    except FileNotFoundError:
        return False
    late = run.late_journal(leg)
    new = not late.exists()
    if new:
        write_whole(late, names)
    local.untold.unlink()
    return new


def mirror_path(path: Path, local: LegLocal, run: RunDir) -> Path:
    """Where a TensorBoard file on the node is copied to. The answer stays the same for as long as the leg lives."""
    target_path = run.tensorboard / path.relative_to(local.tensorboard)
    return target_path if _is_beginning_of(target_path, path) else mirror_path_beside(target_path, local)


def mirror_path_beside(folder: Path, local: LegLocal) -> Path:
    """For a file whose name is taken by that of an earlier leg: events.out.tfevents.x.leg-0002, or ….leg-0002.node-1"""
    return folder.with_name(f"{folder.name}.{local.path.name}")


def _is_beginning_of(copy: Path, source: Path) -> bool:
    """Whether the source may have grown from what the copy holds: by its first and its last bytes. True where there is no copy."""
    try:
        with copy.open("rb", buffering=0) as held, source.open("rb", buffering=0) as own:
            size = os.fstat(held.fileno()).st_size
            if size > os.fstat(own.fileno()).st_size:
                return False
            return all(
                os.pread(held.fileno(), _COMPARED, at) == os.pread(own.fileno(), min(_COMPARED, size - at), at)
                for at in {0, max(size - _COMPARED, 0)}
            )
    except FileNotFoundError:
        return True


def _write_at(handle: int, data: bytes, offset: int) -> int:
    """One call may take less than it was given."""
    return os.pwrite(handle, data, offset)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """With their sizes now. No link is followed, and a pipe is no file."""
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            with contextlib.suppress(OSError):
                seen = path.lstat()
                if stat.S_ISREG(seen.st_mode):
                    yield path, seen.st_size
