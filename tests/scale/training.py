"""A training that does little but save: files that nothing can compress, whose every block says which step wrote it.

It is copied into a run and started there, alone or as one of several ranks. What it resumes from it reads whole and compares,
and leaves with code 3 where a byte is not as it was written.

    python training.py --bytes 2000000000 --steps 600 --every 60
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import onward

_BLOCK = 4 << 20
_FILES = 5
_POOL = random.Random(12).randbytes(_BLOCK)


def block(step: int, name: str, number: int) -> bytes:
    head = f"step {step} {name} block {number}\n".encode()
    return head + _POOL[len(head) :]


def blocks(size: int) -> int:
    """In each of the files."""
    return max(1, round(size / _FILES / _BLOCK))


def names(rank: int) -> list[str]:
    return [f"rank-{rank}-part-{part}.bin" for part in range(_FILES)]


def write(folder: Path, step: int, *, rank: int, size: int) -> None:
    for name in names(rank):
        with (folder / name).open("wb", buffering=0) as file:
            for number in range(blocks(size)):
                file.write(block(step, name, number))


def wrong(folder: Path, step: int, *, rank: int, size: int) -> str:
    """What is not as this step wrote it; empty if all is."""
    for name in names(rank):
        with (folder / name).open("rb", buffering=0) as file:
            for number in range(blocks(size)):
                if file.read(_BLOCK) != block(step, name, number):
                    return f"{name}, block {number}, is not as step {step} wrote it"
            if file.read(1):
                return f"{name} is longer than step {step} wrote it"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True, help="of a checkpoint, of all ranks together")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True, help="steps between two checkpoints")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds a step takes")
    options = parser.parse_args()
    run = onward.init(total_steps=options.steps)
    size = options.bytes // run.world_size

    def say(text: str) -> None:
        print(f"rank {run.rank} {text}", flush=True)

    def save(step: int) -> None:
        began = time.time()
        with run.checkpoint(step, written_by="all") as folder:
            write(folder, step, rank=run.rank, size=size)
        say(f"saved {step} at {began:.1f} in {time.time() - began:.1f} s")  # or skipped it: then its supervisor says so

    first, saved = 0, run.resume()
    if saved:
        step = run.resume_step
        assert step is not None
        say(f"resumed {step}")
        if fault := wrong(saved, step, rank=run.rank, size=size):
            say(f"FAULT {fault}")
            return 3
        first = step + 1
    for step in range(first, options.steps):
        time.sleep(options.pause)
        run.log({"loss": 1 / (step + 1)}, step=step)
        stop = run.should_stop()
        if stop or step % options.every == options.every - 1 or step == options.steps - 1:
            save(step)
        if stop:
            return 75
    run.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
