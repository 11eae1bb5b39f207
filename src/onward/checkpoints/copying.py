"""Copy and hash files in parallel, each byte read once.

Every file is cut into pieces of 64 MiB. Threads take piece after piece, whatever file it belongs to, so that forty files
and one huge file are equally fast. A file's hash is that of its pieces' hashes, in order (`sha256-tree`); files hashed by
plain `sha256`, as older versions did, are one piece. Reading, hashing and writing all release Python's lock.

Written pieces go to the disk at once and leave the page cache, so that a checkpoint neither fills the memory with unwritten
pages nor drives out what the training has cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.errors import StorageError

ALGORITHM = "sha256-tree"
ALGORITHMS = (ALGORITHM, "sha256")

PIECE = 64 << 20
_BUFFER = 1 << 20  # bytes: a thread's; larger ones fall out of the processor's cache and are slower
_MOST_THREADS = 8
_START_WRITING, _WAIT_UNTIL_WRITTEN = 2, 7  # of sync_file_range(2)

Moved = Callable[[int], None]  # bytes dealt with since the last call


class SourceChanged(StorageError):
    """The training wrote to a file while it was being copied: it was not complete after all. Try again later."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One file to copy, or to hash alone where `target` is None. Where there is a target it has been made already."""

    source: Path
    target: Path | None
    size: int


def transfer(
    files: Sequence[Transfer],
    *,
    algorithm: str = ALGORITHM,
    flush: bool = False,
    moved: Moved | None = None,
) -> list[str]:
    """Copy them all, and return their hashes in the same order.

    `flush`: each is on the disk when this returns, and out of the page cache; else it is about to be read. Raises SourceChanged where
    a file is not what it was, and OSError.
    """
    piece = PIECE if algorithm == ALGORITHM else 0
    work = [_File(file, piece, flush=flush) for file in files]
    pieces = sum(len(file.digests) for file in work)
    _Pool(work, moved).run(min(_threads(), pieces))
    return [file.hash() for file in work]


def _threads() -> int:
    """Some more than processors, as some wait for disks; not so many that the training is starved."""
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)) + 2)


class _File:
    def __init__(self, file: Transfer, piece: int, *, flush: bool) -> None:
        self._file = file
        self._piece = piece or max(file.size, 1)
        self._flush = flush and file.target is not None
        self.digests: list[bytes] = [b""] * max(-(-file.size // self._piece), 1)
        self._tree = piece > 0
        self._left = len(self.digests)
        self._lock = threading.Lock()
        self._reading = self._writing = -1
        self._before: os.stat_result | None = None

    def hash(self) -> str:
        return hashlib.sha256(b"".join(self.digests)).hexdigest() if self._tree else self.digests[0].hex()

    def copy(self, index: int, buffer: memoryview, stopped: Callable[[], bool], moved: Moved) -> None:
        """One piece. Tells of each buffer: on a slow store a piece takes seconds, and a copy that is in the way must stop at once."""
        self._open()
        digest = hashlib.sha256()
        at = index * self._piece
        end = min(at + self._piece, self._file.size)
        start = at
        while at < end and not stopped():
            count = os.preadv(self._reading, [buffer[: min(len(buffer), end - at)]], at)
            if not count:
                raise self._changed()
            digest.update(buffer[:count])
            if self._writing >= 0:
                write_at(self._writing, buffer[:count], at)
            at += count
            moved(count)
        self.digests[index] = digest.digest()
        if self._flush:
            _sync_range(self._writing, start, end - start, _START_WRITING)

    @property
    def large(self) -> bool:
        return len(self.digests) > 1

    def settle(self, index: int) -> None:
        """The piece is dealt with: wait for the disk where the file is large, so that unwritten pages do not pile up."""
        start = index * self._piece
        if self.large and self._flush:
            _sync_range(self._writing, start, self._piece, _WAIT_UNTIL_WRITTEN)
            _advise(self._writing, os.POSIX_FADV_DONTNEED, start, self._piece)
        if self.large and self._writing >= 0:
            _advise(self._reading, os.POSIX_FADV_DONTNEED, start, self._piece)
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            self._finish()

    def close(self) -> None:
        reading, self._reading = self._reading, -1
        writing, self._writing = self._writing, -1
        for handle in (reading, writing):
            if handle >= 0:
                os.close(handle)

    def _open(self) -> None:
        with self._lock:
            if self._reading >= 0:
                return
            self._reading = os.open(self._file.source, os.O_RDONLY | os.O_CLOEXEC)
            self._before = os.fstat(self._reading)
            if self._before.st_size != self._file.size:
                raise self._changed()
            _advise(self._reading, os.POSIX_FADV_SEQUENTIAL)
            if self._file.target is not None:
                self._writing = os.open(self._file.target, os.O_WRONLY | os.O_CLOEXEC)

    def _finish(self) -> None:
        if self._flush:
            os.fsync(self._writing)
            _advise(self._writing, os.POSIX_FADV_DONTNEED)
        if self._writing >= 0:
            _advise(self._reading, os.POSIX_FADV_DONTNEED)
        self.close()
        after = self._file.source.stat()
        assert self._before is not None
        if (after.st_size, after.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns):
            raise self._changed()

    def _changed(self) -> SourceChanged:
        return SourceChanged(f"{self._file.source.name} changed while it was being copied")


class _Pool:
    def __init__(self, files: Sequence[_File], moved: Moved | None) -> None:
        self._files = files
        self._moved = moved
        self._pieces = self._all_pieces()
        self._lock = threading.Lock()
        self._failed: BaseException | None = None

    def run(self, threads: int) -> None:
        """Raises what the first of them met."""
        others = [threading.Thread(target=self._work, name="copy", daemon=True) for _ in range(threads - 1)]
        try:
            for thread in others:
                thread.start()
            self._work()
        finally:
            with self._lock:
                self._pieces = iter(())
            for thread in others:
                thread.join()
            for file in self._files:
                file.close()
        if self._failed:
            raise self._failed

    def _all_pieces(self) -> Iterator[tuple[_File, int]]:
        return ((file, index) for file in self._files for index in range(len(file.digests)))

    def _work(self) -> None:
        try:
            self._copy_pieces()
        except BaseException as error:
            with self._lock:
                self._failed = self._failed or error

    def _copy_pieces(self) -> None:
        """A piece is settled after the next one: its bytes reach the disk meanwhile."""
        buffer = memoryview(bytearray(_BUFFER))
        unsettled: tuple[_File, int] | None = None
        while not self._failed:
            with self._lock:
                piece = next(self._pieces, None)
            if piece:
                piece[0].copy(piece[1], buffer, self._has_failed, self._tell)
            if unsettled:
                unsettled[0].settle(unsettled[1])
                unsettled = None
            if piece is None:
                return
            if piece[0].large:
                unsettled = piece
            else:
                piece[0].settle(piece[1])

    def _has_failed(self) -> bool:
        return self._failed is not None

    def _tell(self, length: int) -> None:
        if self._moved:
            with self._lock:
                self._moved(length)


def write_at(handle: int, data: memoryview, at: int) -> None:
    """`os.pwrite` until nothing is left: one call may take less than it was given."""
    while data:
        written = os.pwrite(handle, data, at)
        data, at = data[written:], at + written


def _advise(handle: int, advice: int, start: int = 0, length: int = 0) -> None:
    with contextlib.suppress(OSError):  # some file systems take none
        os.posix_fadvise(handle, start, length, advice)


def _sync_range(handle: int, start: int, length: int, flags: int) -> None:
    """Only a hint: the fsync at the end is what counts, and reports what went wrong."""
    try:
        import ctypes

        call = ctypes.CDLL(None).sync_file_range
    except (ImportError, AttributeError):
        return
    call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    call(handle, start, length, flags)
