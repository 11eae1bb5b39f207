"""Memory for the copy of a training's state. It outlives the process that filled it for as long as another holds its handle."""

from __future__ import annotations

import mmap
import os
import tempfile

_KEPT_FREE = 256 << 20  # bytes of the node's memory


class StateMemory:
    def __init__(self, size: int) -> None:
        """Raises MemoryError rather than having the kernel kill the training."""
        room = free_memory()
        if room is not None and size + _KEPT_FREE > room:
            raise MemoryError(f"a copy of the state takes {size >> 20} MiB, and {room >> 20} MiB of memory are free")
        self._capacity = size
        self.handle = _open()
        try:
            os.posix_fallocate(self.handle, 0, size)
            self.view = mmap.mmap(self.handle, size)
        except BaseException:
            os.close(self.handle)
            raise

    def resize(self, size: int) -> bool:
        """Reuse it for a state of this size. False: it is too small."""
        if size > self._capacity:
            return False
        os.ftruncate(self.handle, size)
        return True

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
            try:
                self.view.close()
            except BufferError:  # something still looks into it; it goes with that
                pass


def _open() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("onward-state", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def free_memory() -> int | None:
    """Bytes that this process may still take, of the machine and of the job it is in. None where that is unknown."""
    found = [value for value in (_machine_free(), _group_free()) if value is not None]
    return min(found) if found else None


def _machine_free() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _group_free() -> int | None:
    """By cgroup version 2: the narrowest of the limits above this process. Memory of files can be had back."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next(line[3:].strip() for line in file if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    rooms = []
    while path.strip("/"):
        try:
            rooms.append(_room_of("/sys/fs/cgroup" + path))
        except (OSError, ValueError, KeyError):  # no limit here
            pass
        path = os.path.dirname(path)
    return min(rooms, default=None)


def _room_of(folder: str) -> int:
    with open(folder + "/memory.max", encoding="ascii") as file:
        limit = int(file.read())  # "max": ValueError
    with open(folder + "/memory.current", encoding="ascii") as file:
        used = int(file.read())
    with open(folder + "/memory.stat", encoding="ascii") as file:
        stat = dict(line.split() for line in file)
    return limit - used + int(stat["inactive_file"])
