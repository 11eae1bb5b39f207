"""Devices that stand for hardware this machine does not have."""

import os
import stat
from pathlib import Path

from beds.errors import BedError

_NULL_DEVICE = os.makedev(1, 3)


def make_gpu(path: Path) -> None:
    """Have a character device there that swallows everything: enough of a GPU for Slurm."""
    if path.exists() and stat.S_ISCHR(path.stat().st_mode):
        return
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, _NULL_DEVICE)
        path.chmod(0o666)
    except PermissionError as error:
        raise BedError(
            f"cannot make the device {path}, and Slurm counts GPUs by devices: {error}",
            hint="give the container the MKNOD capability",
        ) from error
