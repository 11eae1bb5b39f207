"""Stores filled for reading: ours through its own door for points, MLflow's by SQL, since by its server it would take hours."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.tracker_servers import Server

STAMP = 1_790_000_000_000  # milliseconds
_AT_ONCE = 10_000


def value(step: int, run: int = 0) -> float:
    """A loss that falls, with noise in it: what compresses as a real one does."""
    return 5 / (1 + step / 2000) + 0.05 * math.sin(step * 12.9898 + run) ** 3 + run / 1000


def new_runs(server: Server, count: int) -> list[str]:
    asked = {"experiment_id": "0", "run_name": "bench", "start_time": STAMP}
    return [str(server.asked("POST", "/api/2.0/mlflow/runs/create", asked)["run"]["info"]["run_id"]) for _ in range(count)]


def fill_onward_points(folder: Path, counts: Mapping[str, int]) -> None:
    """And merged, as it is half a minute after a run went quiet."""
    from onward.tracker.store import Tracker

    with Tracker.open(folder / "onward.db") as tracker:
        for number, (run, count) in enumerate(counts.items()):
            for first in range(0, count, _AT_ONCE):
                steps = range(first, min(first + _AT_ONCE, count))
                tracker.ingest.points(run, [("loss", step, STAMP / 1000 + step / 10, value(step, number)) for step in steps])
        tracker.upkeep.tidy(resting=0)


def fill_onward_runs(folder: Path, count: int) -> None:
    from onward.tracker.runs.registry import NewRun
    from onward.tracker.store import Tracker

    def make(number: int) -> None:
        params, metrics = described(number)
        made = tracker.runs.create(NewRun(experiment="bench", name=f"run-{number}", params=params, source="by-hand", leg=1))
        tracker.ingest.points(made.run_id, [(key, 100, STAMP / 1000 + number, one) for key, one in metrics.items()])

    with Tracker.open(folder / "onward.db") as tracker, ThreadPoolExecutor(100) as many:  # many share a flush to disk
        for _ in many.map(make, range(count)):
            pass


def described(number: int) -> tuple[dict[str, str], dict[str, float]]:
    """Params and last values of a run of a list."""
    params = {"lr": f"{0.1 / (1 + number % 7):.4f}", "batch": f"{2 ** (4 + number % 5)}", "model": f"net-{number % 3}", "seed": f"{number}"}
    return params, {"loss": value(number % 997, number % 13), "accuracy": (number * 7919 % 10_000) / 10_000}


def fill_mlflow_points(db: Path, counts: Mapping[str, int]) -> None:
    def rows() -> Iterator[tuple[Any, ...]]:
        for number, (run, count) in enumerate(counts.items()):
            for step in range(count):
                yield "loss", value(step, number), STAMP + step * 100, run, step

    with _open(db) as store:
        store.executemany("insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, 0)", rows())
        last = [("loss", value(c - 1, n), STAMP + c * 100, c - 1, run) for n, (run, c) in enumerate(counts.items())]
        store.executemany(_LATEST, last)


def fill_mlflow_runs(db: Path, count: int) -> None:
    ids = [uuid.UUID(int=number + (1 << 100)).hex for number in range(count)]
    described_all = [described(number) for number in range(count)]
    run = (
        "insert into runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, source_version,"
        " lifecycle_stage, artifact_uri, experiment_id) values (?, ?, 'UNKNOWN', '', '', '', 'FINISHED', ?, '', 'active', ?, 0)"
    )
    with _open(db) as store:
        store.executemany(run, [(id, f"run-{n}", STAMP + n, f"mlflow-artifacts:/0/{id}/artifacts") for n, id in enumerate(ids)])
        store.executemany(
            "insert into tags (key, value, run_uuid) values ('mlflow.runName', ?, ?)", [(f"run-{n}", i) for n, i in enumerate(ids)]
        )
        params = [(key, one, id) for id, (given, _) in zip(ids, described_all, strict=True) for key, one in given.items()]
        store.executemany("insert into params (key, value, run_uuid) values (?, ?, ?)", params)
        latest = [(k, v, STAMP + n, 100, ids[n]) for n, (_, metrics) in enumerate(described_all) for k, v in metrics.items()]
        store.executemany(_LATEST, latest)
        points = "insert into metrics (key, value, timestamp, step, run_uuid, is_nan) values (?, ?, ?, ?, ?, 0)"
        store.executemany(points, latest)


_LATEST = "insert into latest_metrics (key, value, timestamp, step, run_uuid, is_nan) values (?, ?, ?, ?, ?, 0)"


@contextlib.contextmanager
def _open(db: Path) -> Iterator[sqlite3.Connection]:
    """Nobody else has it open, and a crash would only spoil a bench: no waiting for the disk."""
    store = sqlite3.connect(db)
    try:
        store.execute("pragma synchronous = off")
        with store:
            yield store
    finally:
        store.close()
