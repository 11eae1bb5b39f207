"""Where beds keep their state, and the lock that lets one command at a time change it."""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beds.errors import BedError

_DEFAULT = "/var/lib/onward-beds"
_MARK = ".onward-bed"  # in a folder that is a bed's own, to write in and to wipe


def beds_folder() -> Path:
    """The folder of all beds: ONWARD_BEDS, or the default."""
    return Path(os.environ.get("ONWARD_BEDS") or _DEFAULT).absolute()


def require_root(doing: str) -> None:
    if os.geteuid() != 0:
        raise BedError(
            f"{doing} needs root: daemons and jobs run as several users",
            hint="the same command with sudo",
        )


def own_folder(path: Path, *, owner: str = "root", mode: int = 0o755) -> Path:
    """Make a folder, or put right the owner and mode of the one that is there."""
    path.mkdir(parents=True, exist_ok=True)
    shutil.chown(path, owner, owner)
    path.chmod(mode)
    return path


def write_whole(path: Path, content: bytes, *, owner: str = "root", mode: int = 0o644) -> None:
    """Make a file appear whole or not at all, never readable for more people than meant."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    shutil.chown(partial, owner, owner)
    partial.chmod(mode)
    partial.rename(path)


def claim(folder: Path) -> None:
    """Make the folder a bed's own; refuse one that holds somebody else's files."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise BedError(
            f"{folder} exists and is not a bed's folder",
            hint="name another place by ONWARD_BEDS",
        )
    own_folder(folder)
    (folder / _MARK).touch()


def wipe(folder: Path) -> None:
    """Delete a bed's folder, and only that."""
    if (folder / _MARK).exists():
        shutil.rmtree(folder)


def remove_tree(folder: Path) -> None:
    """Delete a folder inside a bed's own."""
    shutil.rmtree(folder, ignore_errors=True)


def _open_way(folder: Path) -> None:
    """Make the folder if need be; all users must be able to pass through it."""
    for step in [*reversed(folder.parents), folder]:
        if not step.exists():
            step.mkdir()
            step.chmod(0o755)
        elif not step.stat().st_mode & stat.S_IXOTH:
            raise BedError(
                f"{step} is closed to other users, whose jobs must reach {folder}",
                hint=f"chmod o+x {step}, or name another place by ONWARD_BEDS",
            )


@contextmanager
def locked(folder: Path, *, patience: float = 900) -> Iterator[None]:
    """Hold the bed's lock; whoever comes second waits for the first."""
    _open_way(folder.parent)
    lock = folder.with_name(f"{folder.name}.lock")  # beside the folder: it outlives a wipe
    with lock.open("w") as stream:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise BedError(
                        f"another beds command has held {lock} for {patience:.0f} s",
                        hint=f"'fuser {lock}' names its process",
                    ) from None
                time.sleep(0.1)
        yield
