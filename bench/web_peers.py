"""MLflow's page on the same data: ten thousand runs, a run of a million points, and fifty of ten thousand points each."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Error

from bench.tracker_fill import fill_mlflow_points, fill_mlflow_runs, new_runs
from bench.tracker_servers import Server, mlflow_up
from bench.web_fill import EACH, MILLION, OVERLAID, RUNS
from bench.web_window import PATIENCE_S, window

_ROWS = "[role=row] a[href*='/runs/'], .ag-row a[href*='/runs/']"
_DRAWN = ".js-plotly-plot .main-svg .trace path, .js-plotly-plot canvas"
_REPEATS = 3


def fill(folder: Path) -> list[str]:
    """The ids of the run of a million points and of those that are drawn over each other. Made once."""
    kept = folder / "web.json"
    if kept.exists():
        found: list[str] = json.loads(kept.read_text())
        return found
    with mlflow_up(folder) as server:  # makes its tables
        ids = new_runs(server, OVERLAID + 1)
    fill_mlflow_runs(folder / "mlflow.db", RUNS)
    fill_mlflow_points(folder / "mlflow.db", {ids[0]: MILLION, **dict.fromkeys(ids[1:], EACH)})
    kept.write_text(json.dumps(ids))
    return ids


def measure(browser: Browser, folder: Path) -> dict[str, str]:
    """What its page took, by the names of the rows that it stands beside; where it did not come to an end, that."""
    long, *overlaid = fill(folder)
    with mlflow_up(folder) as server:
        runs = ",".join(f'"{run}"' for run in overlaid)
        return {
            "list": _opened(browser, server, "/#/experiments/0/runs", _ROWS),
            "long": _opened(browser, server, f"/#/experiments/0/runs/{long}/model-metrics", _DRAWN),
            "compare": _opened(browser, server, f"/#/metric?runs=[{runs}]&metric=%22loss%22&experiments=[%220%22]", _DRAWN),
        }


def _opened(browser: Browser, server: Server, path: str, selector: str) -> str:
    times = []
    try:
        for _ in range(_REPEATS):
            with window(browser, server) as one:
                times.append(one.opened(path, selector))
    except Error:
        return f"mlflow: nothing drawn within {PATIENCE_S} s"
    return f"mlflow {median(times):,.0f} ms"
