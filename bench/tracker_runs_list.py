"""A list of 10,000 runs: its first page, filtered on a metric and a param, ordered by a metric. The first 100 of each, as a page asks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.tracker_fill import fill_mlflow_runs, fill_onward_runs
from bench.tracker_servers import Server, mlflow_up, onward_up
from bench.tracker_table import Table, median

RUNS = 10_000
PAGE = 100
REPEATS = 9
_SEARCH = "/api/2.0/mlflow/runs/search"


def measure(table: Table, work: Path) -> None:
    with mlflow_up(work / "mlflow"):
        pass  # its tables
    fill_mlflow_runs(work / "mlflow" / "mlflow.db", RUNS)
    (work / "onward").mkdir(exist_ok=True)
    fill_onward_runs(work / "onward", RUNS)
    with onward_up(work / "onward") as onward, mlflow_up(work / "mlflow") as mlflow:
        ours = str(onward.asked("GET", "/api/2.0/mlflow/experiments/get-by-name?experiment_name=bench")["experiment"]["experiment_id"])
        for what, query, asked in _QUESTIONS:
            native = _timed(onward, "GET", f"/api/v1/runs?experiment=bench&limit={PAGE}{query}", None, REPEATS)
            same = _timed(onward, "POST", _SEARCH, {"experiment_ids": [ours], "max_results": PAGE, **asked}, REPEATS)
            theirs = _timed(mlflow, "POST", _SEARCH, {"experiment_ids": ["0"], "max_results": PAGE, **asked}, 3)
            table.row(
                f"{RUNS:,} runs, {what}",
                onward=f"{native * 1e3:.1f} ms; by MLflow's protocol {same * 1e3:.1f} ms",
                peers=f"mlflow {theirs * 1e3:,.0f} ms",
                goal="≤ 50 ms",
                met=native <= 0.050,
            )


_QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("first page", "", {}),
    (
        "filtered on a metric and a param",
        "&filter=" + quote("metrics.accuracy > 0.9 and params.model = 'net-1'"),
        {"filter": "metrics.accuracy > 0.9 and params.model = 'net-1'"},
    ),
    ("ordered by a metric", "&order=" + quote("metrics.loss asc"), {"order_by": ["metrics.loss ASC"]}),
)


def _timed(server: Server, method: str, path: str, body: Any, repeats: int) -> float:
    """The first is a warm-up, but of an answer that takes long."""
    times: list[float] = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        status, text = server.call(method, path, body)
        times.append(time.perf_counter() - began)
        if status != 200 or len(json.loads(text)["runs"]) != PAGE:
            raise RuntimeError(f"{server.name}: {path[:60]} answered {status}: {text[:200]!r}")
        if sum(times) > 8:
            break
    return median(times[1:] or times)
