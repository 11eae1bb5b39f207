"""One training of the tracker's bench: a tight loop that logs, in a process of its own, and how long each call kept it.

    python tracker_client_loop.py SYSTEM METRICS STEPS SECONDS PAUSE FOLDER

Systems: csv and jsonl (one line, flushed), onward, trackio, mlflow (its client, to MLFLOW_TRACKING_URI). Imports nothing of the house but
what it measures, so that the peers' environment can run it.
"""

from __future__ import annotations

import csv
import importlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

Log = Callable[[dict[str, float], int], object]


def of_csv(folder: Path) -> tuple[Log, Callable[[], object]]:
    file = (folder / "log.csv").open("w", newline="")
    writer = csv.writer(file)

    def log(metrics: dict[str, float], step: int) -> None:
        writer.writerow([step, time.time(), *metrics.values()])
        file.flush()

    return log, file.close


def of_jsonl(folder: Path) -> tuple[Log, Callable[[], object]]:
    file = (folder / "log.jsonl").open("w")

    def log(metrics: dict[str, float], step: int) -> None:
        file.write(json.dumps({"step": step, "time": time.time(), **metrics}) + "\n")
        file.flush()

    return log, file.close


def of_onward(folder: Path) -> tuple[Log, Callable[[], object]]:
    import onward

    run = onward.init(name="bench")
    return run.log, run.finish


def of_trackio(folder: Path) -> tuple[Log, Callable[[], object]]:
    os.environ["TRACKIO_DIR"] = str(folder / "trackio")
    trackio = importlib.import_module("trackio")
    trackio.init(project="bench", name="bench", embed=False)
    return lambda metrics, step: trackio.log(metrics, step=step), trackio.finish


def of_mlflow(folder: Path) -> tuple[Log, Callable[[], object]]:
    mlflow = importlib.import_module("mlflow")
    mlflow.start_run()
    return lambda metrics, step: mlflow.log_metrics(metrics, step=step), mlflow.end_run


SYSTEMS: dict[str, Callable[[Path], tuple[Log, Callable[[], object]]]] = {
    "csv": of_csv,
    "jsonl": of_jsonl,
    "onward": of_onward,
    "trackio": of_trackio,
    "mlflow": of_mlflow,
}


def train(log: Log, *, metrics: int, steps: int, seconds: float, pause: float, done: Callable[[int], object]) -> list[int]:
    """Nanoseconds inside each call. The values are ready before it, as a step's are."""
    names = [f"metric_{number}" for number in range(metrics)]
    chance = random.Random(1)
    waits: list[int] = []
    clock = time.perf_counter_ns
    over = clock() + int(seconds * 1e9)
    for step in range(steps):
        values = {name: chance.random() for name in names}
        began = clock()
        log(values, step)
        ended = clock()
        waits.append(ended - began)
        done(step)
        if pause:
            time.sleep(pause)
        if ended > over:
            break
    return waits


def main() -> None:
    system, metrics, steps, seconds, pause, place = sys.argv[1:]
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    log, close = SYSTEMS[system](folder)
    count = os.open(folder / "steps", os.O_WRONLY | os.O_CREAT, 0o644) if float(pause) else -1

    def answer(step: int) -> None:
        if count >= 0:  # someone will kill us, and wants to know how far we were
            os.pwrite(count, b"%08d" % (step + 1), 0)

    waits = train(log, metrics=int(metrics), steps=int(steps), seconds=float(seconds), pause=float(pause), done=answer)
    close()
    first, *rest = waits
    rest.sort()
    at = [rest[min(len(rest) - 1, int(len(rest) * q))] / 1e3 for q in (0.5, 0.99)]
    print("measured " + json.dumps({"steps": len(waits), "first": first / 1e3, "p50": at[0], "p99": at[1]}))


if __name__ == "__main__":
    main()
