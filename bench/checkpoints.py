"""Checkpoints at the speed of the disks: publish and restore of a large one beside `cp` on the same paths, and the memory it takes.

`--size` bytes in `--files` files of real data (nothing sparse), by default 4 GB in 40. Before each copy the files are
dropped from the page cache. `cp` is followed by `sync` where publish flushes; restoring does not flush, and neither does its `cp`.
The better of `--repeats` is taken of each, in turns. Every process is a fresh one; its resident memory is that of the process
alone. The last part publishes one file of the same size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BLOCK = 16 << 20

PUBLISH = """
import resource, sys, time
from pathlib import Path
import onward.supervisor.leg.publisher_process  # what the publisher's process has loaded
from onward.checkpoints.publishing.publish import publish
from onward.model.checkpoint import CheckpointName
source, store = Path(sys.argv[1]), Path(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
publish({path.name: path for path in sorted(source.iterdir())}, store, CheckpointName(1, 1), created=1.0)
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

RESTORE = """
import resource, sys, time
from pathlib import Path
import onward.supervisor.main, onward.supervisor.leg.train, onward.supervisor.disk.salvage, onward.supervisor.telemetry.push  # as in a leg
from onward.checkpoints.publishing.publish import restore
began = time.perf_counter()
restore(Path(sys.argv[1]), Path(sys.argv[2]))
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

VERIFY = """
import resource, sys, time
from pathlib import Path
from onward.checkpoints.manifest import verify
began = time.perf_counter()
verify(Path(sys.argv[1]))
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def fill(folder: Path, *, size: int, files: int) -> None:
    block = os.urandom(BLOCK)
    folder.mkdir()
    for number in range(files):
        left = size // files
        with (folder / f"shard-{number:03d}.bin").open("wb") as file:
            count = 0
            while left > 0:
                stamp = f"{number}.{count};".encode()
                left -= file.write((stamp + block[len(stamp) :])[:left])
                count += 1


def forget(folder: Path) -> None:
    """Out of the page cache, so that the next reader reads from the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def ours(script: str, *arguments: Path) -> tuple[float, int]:
    """Seconds and the process's largest resident memory in KiB."""
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    seconds, memory = done.stdout.split()
    return float(seconds), int(memory)


def copied(source: Path, target: Path, *, flush: bool) -> tuple[float, int]:
    began = time.perf_counter()
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    if flush:
        for path in (*target.iterdir(), target):
            subprocess.run(["sync", str(path)], check=True)
    return time.perf_counter() - began, 0


def best(source: Path, target: Path, repeats: int, **ways: Callable[[], tuple[float, int]]) -> dict[str, tuple[float, int]]:
    """In turns, since the machine's speed changes with time."""
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            shutil.rmtree(target, ignore_errors=True)
            os.sync()
            forget(source)
            found[name].append(way())
    shutil.rmtree(target, ignore_errors=True)
    return {name: (min(one[0] for one in all), max(one[1] for one in all)) for name, all in found.items()}


def say(what: str, size: int, cp: float, mine: tuple[float, int]) -> None:
    rate, plain = size / mine[0] / 1e9, size / cp / 1e9
    print(f"{what:34} {rate:5.2f} GB/s   cp {plain:5.2f} GB/s   {rate / plain:5.2f} × cp (goal ≥ 0.9)   {mine[1] / 1024:4.0f} MiB resident")


def compare(work: Path, *, size: int, files: int, repeats: int) -> tuple[int, int]:
    """Resident KiB of the process that publishes, and of the one that restores."""
    source, target = work / "source", work / "target"
    fill(source, size=size, files=files)
    made = best(
        source,
        target,
        repeats,
        cp=lambda: copied(source, target, flush=True),
        publish=lambda: ours(PUBLISH, source, target),
    )
    say(f"publish, {files} file{'s' * (files > 1)}", size, made["cp"][0], made["publish"])
    ours(PUBLISH, source, work / "store")
    shutil.rmtree(source)
    published = work / "store" / "leg-0001.step-00000001"
    back = best(
        published,
        target,
        repeats,
        cp=lambda: copied(published, target, flush=False),
        restore=lambda: ours(RESTORE, published, target),
        verify=lambda: ours(VERIFY, published),
    )
    say(f"restore, {files} file{'s' * (files > 1)}", size, back["cp"][0], back["restore"])
    print(f"{'verify in place':34} {size / back['verify'][0] / 1e9:5.2f} GB/s")
    shutil.rmtree(work / "store")
    return made["publish"][1], back["restore"][1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=4e9, help="bytes")
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; twice the size must be free")
    options = parser.parse_args()
    size = int(options.size)
    work = Path(tempfile.mkdtemp(prefix="onward-bench-", dir=options.folder))
    try:
        print(f"{size / 1e9:.1f} GB, {len(os.sched_getaffinity(0))} cores, {work}")
        publisher, supervisor = compare(work, size=size, files=options.files, repeats=options.repeats)
        compare(work, size=size // 4, files=1, repeats=options.repeats)
        print(f"supervisor and publisher together     {(publisher + supervisor) / 1024:.0f} MiB resident (goal ≤ 150)")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
