"""A training that saves by itself and knows nothing of Onward: the shape of what most batch scripts start.

Python alone, so that it runs anywhere. After each epoch the whole state (weights, position, random generator) goes to
`experiments/<id>/checkpoints/last.json`, whole or not at all; a training that is started again goes on from there, and
ends with the same bytes as one that was never interrupted.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--experiment-id", required=True)
parser.add_argument("--learning-rate", type=float, default=0.001)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=100)
args = parser.parse_args()

pause = float(os.environ.get("EPOCH_SECONDS", "0"))  # makes a small training long
checkpoint = Path("experiments", args.experiment_id, "checkpoints", "last.json")
checkpoint.parent.mkdir(parents=True, exist_ok=True)

rng = random.Random(1)
data = [[rng.uniform(-1, 1) for _ in range(8)] for _ in range(512)]
truth = [rng.uniform(-1, 1) for _ in range(8)]
state = {"epoch": 0, "weights": [0.0] * 8, "rng": [3, *rng.getstate()[1:]]}

if checkpoint.exists():
    state = json.loads(checkpoint.read_text())
    print(f"going on after epoch {state['epoch']}", flush=True)
rng.setstate((3, tuple(state["rng"][1]), state["rng"][2]))

for epoch in range(state["epoch"] + 1, args.epochs + 1):
    weights = state["weights"]
    rows = rng.sample(data, len(data))
    loss = 0.0
    for start in range(0, len(rows), args.batch_size):
        batch = rows[start : start + args.batch_size]
        slope = [0.0] * 8
        for row in batch:
            error = sum(w * x for w, x in zip(weights, row, strict=True)) - sum(t * x for t, x in zip(truth, row, strict=True))
            loss += error * error
            slope = [s + error * x for s, x in zip(slope, row, strict=True)]
        weights = [w - args.learning_rate * s for w, s in zip(weights, slope, strict=True)]
    time.sleep(pause)
    state = {"epoch": epoch, "weights": weights, "rng": [3, *rng.getstate()[1:]]}
    beside = checkpoint.with_suffix(".tmp")
    beside.write_text(json.dumps(state))
    os.replace(beside, checkpoint)
    print(f"epoch {epoch}: loss {loss / len(rows):.6f}", flush=True)

print("training is complete", flush=True)
