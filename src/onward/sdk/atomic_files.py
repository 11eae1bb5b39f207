"""Files that are whole or not there: write beside, flush, rename. Used by everything that others may read."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import time
from pathlib import Path

TYPE_CHECKING = False  # as in `typing`, which a training need not wait for
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

PART = ".part"  # ends the name of what is still being written


_DAY = 86400.0
_swept: set[Path] = set()  # folders in which this process has looked for stale drafts


def write_whole(path: Path, data: bytes | str, *, mode: int = 0o644) -> None:
    """Write `data` to `path`, all of it or nothing, whatever dies at any moment."""
    with draft_of(path, mode=mode) as file:
        write_all(file.fileno(), data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def draft_of(path: Path, *, mode: int = 0o644, flush: bool = True) -> Iterator[BinaryIO]:
    """A new file next to `path`, to be written. It takes the place of `path` when the block ends; if the block raises, it is removed.

    No other writer has its name: the name holds this host, this process and a random number, and the file is created exclusively.
    Its mode is `mode` less the umask. Without `flush`, a power cut may lose what was written.
    """
    _sweep(path.parent)
    draft = path.with_name(draft_name(path.name))
    writing = open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
    try:
        with writing as file:
            yield file
            file.flush()
            if flush:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    if flush:
        sync_folder(path.parent)


def draft_name(name: str) -> str:
    """A hidden name that nothing else has. A long name is cut: the file system takes 255 bytes."""
    short = name.encode(errors="surrogateescape")[:180].decode(errors="ignore")
    return f".{short}.{_here()}.{os.getpid()}.{os.urandom(8).hex()}{PART}"


@functools.lru_cache(maxsize=None)
def _here() -> str:
    """This host, boot and space of process numbers: where a process number means one process."""
    import hashlib

    from onward.sdk.process_identity import this_machine

    machine = this_machine()
    return hashlib.sha256("\0".join(machine.values()).encode()).hexdigest()[:12]


def _sweep(folder: Path) -> None:
    """Remove drafts that killed writers left in this folder. A process looks once into each folder it writes to."""
    if folder in _swept:
        return
    if len(_swept) > 10_000:
        _swept.clear()
    _swept.add(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _is_stale(entry):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _is_stale(entry: os.DirEntry[str]) -> bool:
    """A draft whose writer is dead or, if that is unknown from here, which has not changed for a day."""
    here, pid, random, part = entry.name.split(".")[-4:] if entry.name.count(".") > 4 else ("", "", "", "")
    if not entry.name.startswith(".") or f".{part}" != PART or (len(here), len(random)) != (12, 16) or not pid.isdecimal():
        return False
    if here == _here() and os.path.exists("/proc/self") and not os.path.exists(f"/proc/{pid}"):
        return True
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _DAY
    except OSError:
        return False


def same_file(source: Path, target: Path) -> None:
    """A second name for a file that never changes; on another disk, a copy of it."""
    try:
        os.link(source, target)
    except FileExistsError:
        pass
    except OSError:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def make_folder_in(base: Path, folder: Path) -> None:
    """Make `folder`, and what is missing between it and `base`. Raises FileNotFoundError where `base` is not there: its storage may not
    be mounted now, and what is put under an empty mount point is lost as soon as it is."""
    for name in folder.relative_to(base).parts or ("",):
        base = base / name
        try:
            base.mkdir()
        except FileExistsError:
            pass


def write_all(handle: int, data: bytes) -> None:
    """`os.write` until all is written: one call may write only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable. Some network file systems refuse this and need no flush."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
