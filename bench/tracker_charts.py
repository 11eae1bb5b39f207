"""Charts: one metric of a million points, and 50 runs of 10,000 points each, as a page asks for them.

Ours answers with the lowest and highest of each bucket, MLflow's page with a sample of 320 points a run. Both stores are filled beforehand,
MLflow's by SQL.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.tracker_fill import fill_mlflow_points, fill_onward_points, new_runs
from bench.tracker_servers import Server, mlflow_up, onward_up
from bench.tracker_table import Table, median

MILLION = 1_000_000
RUNS, EACH = 50, 10_000
REPEATS = 9


def measure(table: Table, work: Path) -> None:
    with onward_up(work / "onward") as server:
        ours = new_runs(server, RUNS + 1)
    fill_onward_points(work / "onward", {ours[0]: MILLION, **dict.fromkeys(ours[1:], EACH)})
    with mlflow_up(work / "mlflow") as server:
        theirs = new_runs(server, RUNS + 1)
    fill_mlflow_points(work / "mlflow" / "mlflow.db", {theirs[0]: MILLION, **dict.fromkeys(theirs[1:], EACH)})
    with onward_up(work / "onward") as onward, mlflow_up(work / "mlflow") as mlflow:
        one = _timed(onward, "POST", "/api/v1/series/search", {"runs": ours[:1], "metrics": ["loss"], "buckets": 1000}, REPEATS)
        one_theirs = _timed(mlflow, "GET", _interval(theirs[:1]), None, 1)
        _must_hold(onward, ours[0], MILLION)
        table.row(
            "chart of 1 M points",
            onward=f"{one[0] * 1e3:.1f} ms, {one[1] / 1e3:.0f} kB (1,000 buckets)",
            peers=f"mlflow {one_theirs[0] * 1e3:,.0f} ms, {one_theirs[1] / 1e3:.0f} kB (320 sampled)",
            goal="≤ 20 ms",
            met=one[0] <= 0.020,
        )
        many = _timed(onward, "POST", "/api/v1/series/search", {"runs": ours[1:], "metrics": ["loss"]}, REPEATS)
        many_theirs = _timed(mlflow, "GET", _interval(theirs[1:]), None, 1)
        table.row(
            f"chart of {RUNS} runs × {EACH:,} points",
            onward=f"{many[0] * 1e3:.0f} ms ({many_theirs[0] / many[0]:.0f} × faster), {many[1] / 1e6:.2f} MB (200 buckets a run)",
            peers=f"mlflow {many_theirs[0]:.1f} s, {many_theirs[1] / 1e6:.1f} MB (320 sampled a run)",
            goal="≤ 1/100 of MLflow's time, ≤ 0.3 MB",
            met=many[0] <= many_theirs[0] / 100 and many[1] <= 300_000,
        )
        points = MILLION + RUNS * EACH
        sizes = [sum(path.stat().st_size for path in (work / name).glob(f"{name}.db*")) / points for name in ("onward", "mlflow")]
        table.row(
            f"bytes a point on disk, those {points / 1e6:.1f} M",
            onward=f"{sizes[0]:.1f} (compacted)",
            peers=f"mlflow {sizes[1]:.0f}",
            goal="≤ 16",
            met=sizes[0] <= 16,
        )


def _interval(runs: list[str]) -> str:
    named = "&".join(f"run_ids={run}" for run in runs)
    return f"/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?{named}&metric_key=loss&max_results=320"


def _timed(server: Server, method: str, path: str, body: Any, repeats: int) -> tuple[float, int]:
    """Seconds of an answer, and its bytes. The first of several is a warm-up."""
    times, size = [], 0
    for number in range(repeats + (repeats > 1)):
        began = time.perf_counter()
        status, text = server.call(method, path, body)
        took = time.perf_counter() - began
        if status != 200:
            raise RuntimeError(f"{server.name}: {path[:60]} answered {status}: {text[:200]!r}")
        size = len(text)
        if number or repeats == 1:
            times.append(took)
    return median(times), size


def _must_hold(server: Server, run: str, count: int) -> None:
    drawn = server.asked("GET", f"/api/v1/series?run={run}&metric=loss&buckets=10")["series"][0]
    if drawn["points"] != count:
        raise RuntimeError(f"{drawn['points']} points are there, not {count}")
