"""A training with the flags of many a horovod script: where to read checkpoints from, and where to write them. It knows nothing of Onward.

It saves `checkpoint-epoch-NN.json` by itself, from rank 0, and goes on from the newest it finds. Its processes average what they
learn over files in a folder beside the checkpoints, as a stand-in for horovod's allreduce; everything else is as it would be.

    onward submit params.yaml
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--read-checkpoints-from", type=Path, required=True)
    parser.add_argument("--write-checkpoints-to", type=Path, required=True)
    parser.add_argument("--tensorboard-logging-dir", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seconds-an-epoch", type=float, default=1.0)
    parser.add_argument("--base-lr", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def rank_and_size() -> tuple[int, int]:
    """As `hvd.rank()` and `hvd.size()` tell, by the variables of mpirun, horovodrun or srun."""
    for rank, size in (("HOROVOD_RANK", "HOROVOD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("RANK", "WORLD_SIZE")):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def gradient(weight: float, seed: int, rank: int, epoch: int) -> float:
    """Of one process, at one epoch: it follows from the seed alone, so that a resumed training repeats nothing else."""
    source = random.Random(f"{seed} {rank} {epoch}")
    return weight - 3.0 + source.gauss(0.0, 0.1)


def averaged(mine: float, *, folder: Path, epoch: int, rank: int, size: int) -> float:
    """The stand-in for an allreduce: every process leaves its number, and waits for all."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{epoch}-{rank}.tmp"
    beside.write_text(repr(mine))
    beside.rename(folder / f"{epoch}-{rank}")
    numbers = []
    for other in range(size):
        path = folder / f"{epoch}-{other}"
        while not path.exists():
            time.sleep(0.01)
        numbers.append(float(path.read_text()))
    return sum(numbers) / size


def main() -> int:
    options = parse()
    rank, size = rank_and_size()
    weight, first = 0.0, 1
    found = sorted(options.read_checkpoints_from.glob("checkpoint-epoch-*.json"))
    if found:
        state = json.loads(found[-1].read_text())
        weight, first = state["weight"], state["epoch"] + 1
        print(f"rank {rank} goes on from {found[-1].name}", flush=True)
    meeting = options.write_checkpoints_to.parent / ".allreduce"
    for epoch in range(first, options.epochs + 1):
        time.sleep(options.seconds_an_epoch)
        weight -= options.base_lr * averaged(gradient(weight, options.seed, rank, epoch), folder=meeting, epoch=epoch, rank=rank, size=size)
        if rank == 0:
            print(f"epoch {epoch} of {options.epochs}: weight {weight:.6f}", flush=True)
            name = options.write_checkpoints_to / f"checkpoint-epoch-{epoch:03d}.json"
            name.with_suffix(".tmp").write_text(json.dumps({"epoch": epoch, "weight": weight}))
            name.with_suffix(".tmp").rename(name)
    if rank == 0 and options.out:
        options.out.write_text(json.dumps({"weight": weight}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
