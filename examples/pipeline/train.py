"""Logistic regression, a step of gradient descent a second. It stops when it is asked, and goes on in the next job."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

from moons import features, score

import onward

CHECKPOINT_EVERY = 45


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("--pause", type=float, default=1.0)
    options = parser.parse_args()
    points = json.loads(options.data.read_text())
    run = onward.init(total_steps=options.steps)
    before = run.resume()
    state = json.loads((Path(before) / "weights.json").read_text()) if before else {"step": -1, "weights": [0.0] * len(features(0, 0))}
    weights = state["weights"]
    for step in range(state["step"] + 1, options.steps):
        loss = 0.0
        slope = [0.0] * len(weights)
        for x, y, upper in points:
            says = 1 / (1 + math.exp(-score(weights, x, y)))
            loss -= math.log(max(says if upper else 1 - says, 1e-12)) / len(points)
            for i, f in enumerate(features(x, y)):
                slope[i] += (says - upper) * f / len(points)
        weights = [w - 0.5 * s for w, s in zip(weights, slope, strict=True)]
        run.log({"loss": loss}, step=step)
        time.sleep(options.pause)
        stop = run.should_stop()
        if stop or (step + 1) % CHECKPOINT_EVERY == 0:
            with run.checkpoint(step) as folder:
                (folder / "weights.json").write_text(json.dumps({"step": step, "weights": weights}))
        if stop:
            return 75
    run.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
