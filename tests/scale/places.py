"""Folders on slow and on small file systems, below one folder by which everything is found again and cleared away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_SLOW = (100_000_000, 50)  # the slow store's limit: bytes a second, or where that is more, a checkpoint in so many seconds
_BUSY = 20.0  # seconds for the last process to leave a file system
_SECTOR = 512


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A file system of its own on a loop device."""

    folder: Path
    device: str

    @property
    def written(self) -> int:
        """Bytes written to the device so far."""
        subprocess.run(["sync", "-f", str(self.folder)], check=True)
        return int(Path("/sys/block", Path(self.device).name, "stat").read_text().split()[6]) * _SECTOR


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A test's folder. `clear` ends, unmounts and removes all that lies below it, and nothing else."""

    folder: Path

    def disk(self, name: str, size: int) -> Disk:
        """ext4 of this size, in a file: it takes as much room here as was ever written to it."""
        image, folder = self.folder / f"{name}.img", self.folder / name
        folder.mkdir()
        with image.open("wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image)], check=True)
        found = subprocess.run(["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True)
        device = found.stdout.strip()
        subprocess.run(["mount", device, str(folder)], check=True)
        folder.chmod(0o1777)
        return Disk(folder=folder, device=device)

    def slow(self, name: str, *, checkpoint: int) -> Path:
        """A folder behind bindfs (FUSE), which holds writes up: so many bytes a second at most, for all who write together.

        Reading is four times as fast. What really goes through is half of the limit or so, and is to be measured.
        """
        least, seconds = _SLOW
        rate = max(least, checkpoint // seconds)
        behind, mount = self.folder / f"{name}.behind", self.folder / name
        for folder in (behind, mount):
            folder.mkdir()
        behind.chmod(0o1777)
        subprocess.run(["bindfs", f"--write-rate={rate}", f"--read-rate={4 * rate}", str(behind), str(mount)], check=True)
        return mount

    def clear(self) -> None:
        """A second Ctrl-C does not interrupt it."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        try:
            self._clear()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler)

    def _clear(self) -> None:
        _end(self.folder)
        for folder in _mounted_below(self.folder):
            _unmount(folder)
        for device in _loops_below(self.folder):
            subprocess.run(["losetup", "--detach", device], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def clear_abandoned(above: Path, prefix: str) -> list[Path]:
    """What a test left behind that was killed itself. Folders end with the process number of their test."""
    found = [folder for folder in above.glob(f"{prefix}*") if not Path("/proc", folder.name.removeprefix(prefix)).exists()]
    for folder in found:
        Ground(folder=folder).clear()
    return found


def rate_of(folder: Path, size: int) -> float:
    """Bytes a second that a plain writer reaches there."""
    block, path, began = os.urandom(1 << 20), folder / ".rate", time.monotonic()
    with path.open("wb", buffering=0) as file:
        for _ in range(size >> 20):
            file.write(block)
        os.fsync(file.fileno())
    took = time.monotonic() - began
    path.unlink()
    return (size >> 20 << 20) / took


def _end(folder: Path) -> None:
    """Kill every process that was started for this folder; by its number, twice, as one may just have started another."""
    mine = f"{folder}/".encode()
    for _ in range(2):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes()
                ours = b"bindfs" not in words.split(b"\0")[0] and (mine in words or mine in (process / "environ").read_bytes())
                if ours and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ValueError):
                continue
        time.sleep(0.2)


def _mounted_below(folder: Path) -> list[Path]:
    """Deepest first."""
    places = [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((mount for mount in places if folder in mount.parents), key=lambda folder: -len(folder.parts))


def _unmount(folder: Path) -> None:
    give_up = time.monotonic() + _BUSY
    while subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode:
        if time.monotonic() > give_up:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)
            return
        time.sleep(0.5)


def _loops_below(folder: Path) -> list[str]:
    backings = [(path.parent.parent.name, path.read_text().strip()) for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [f"/dev/{name}" for name, image in backings if folder in Path(image.removesuffix(" (deleted)")).parents]
