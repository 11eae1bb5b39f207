"""Three benchmarks of a checkpoint. Each prints a line of JSON for every item it has measured: what is printed is never measured again."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

from moons import moons, score

MENDED = Path(__file__).resolve().parent / "mended"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("accuracy", "margin", "noise"))
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--done", type=Path, help="a file with the items that earlier jobs have measured")
    parser.add_argument("--pause", type=float, default=0.0)
    options = parser.parse_args()
    weights = json.loads((options.checkpoint / "weights.json").read_text())["weights"]
    done = set(options.done.read_text().split()) if options.done and options.done.exists() else set()
    if options.what == "noise":
        for item in range(100):
            if str(item) not in done:
                time.sleep(options.pause)
                tell(str(item), accuracy(weights, noise=random.Random(item).uniform(0.0, 0.4), seed=1000 + item))
        return
    if options.what == "margin" and options.shard == 1 and not MENDED.exists():
        sys.exit("the second shard of this benchmark is broken")
    points = moons(200, seed=2)[options.shard :: options.of]
    for number, (x, y, upper) in enumerate(points):
        says = score(weights, x, y) * (1 if upper else -1)
        tell(f"{options.shard}-{number}", float(says > 0) if options.what == "accuracy" else says)


def accuracy(weights: list[float], *, noise: float, seed: int) -> float:
    points = moons(100, seed=seed, noise=noise)
    return sum((score(weights, x, y) > 0) == bool(upper) for x, y, upper in points) / len(points)


def tell(item: str, value: float) -> None:
    print(json.dumps({"item": item, "score": value}), flush=True)


if __name__ == "__main__":
    main()
