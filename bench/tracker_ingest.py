"""Points taken in: batches of 1,000 and single ones, from 1, 8 and 32 clients at once, each client with a run of its own.

The same raw clients speak MLflow's protocol to MLflow's server and to ours, and then our own to ours. A request that is not answered
with success is counted as failed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.tracker_clients import Load, Outcome, driven
from bench.tracker_servers import Server, mlflow_up, onward_up
from bench.tracker_table import Table, median, number

CLIENTS = (1, 8, 32)
BATCH = 1000
SECONDS = 4.0
REPEATS = 3
_STAMP = 1_790_000_000_000


def measure(table: Table, work: Path) -> None:
    with mlflow_up(work / "mlflow") as mlflow, onward_up(work / "onward") as onward:
        runs = {server.name: [_new_run(server) for _ in range(max(CLIENTS))] for server in (mlflow, onward)}
        firsts: dict[str, int] = {}
        for size in (BATCH, 1):
            for clients in CLIENTS:
                found: dict[str, list[Outcome]] = {}
                limits: list[float] = []  # beside each of ours: a disk that others use too changes from second to second
                for name, server, native in (("mlflow", mlflow, False), ("onward", onward, False), ("native", onward, True)):
                    for _ in range(1 if server is mlflow else REPEATS):
                        requests = [(_native if native else _mlflow)(run, size) for run in runs[server.name][:clients]]
                        first = firsts.get(server.name, 0)
                        load = Load(
                            port=server.port, clients=clients, seconds=SECONDS, requests=requests, headers=dict(server.headers), first=first
                        )
                        if size == clients == 1 and server is onward:
                            limits.append(_flushes(work))
                        outcome = driven(load)
                        firsts[server.name] = outcome.last + 1
                        found.setdefault(name, []).append(outcome)
                _tell(table, size, clients, found, limit=median(limits) if limits else 0.0)


def _tell(table: Table, size: int, clients: int, found: dict[str, list[Outcome]], *, limit: float) -> None:
    rate = {name: median([o.answered * size / o.seconds for o in outcomes]) for name, outcomes in found.items()}
    failed = {name: sum(o.failed for o in outcomes) for name, outcomes in found.items()}
    p99 = {name: median([o.p99 for o in outcomes]) * 1e3 for name, outcomes in found.items()}
    base = max(rate["mlflow"], 1 / SECONDS)
    what = f"{clients} client{'s' if clients > 1 else ''}, " + (
        f"batches of {size}: points/s" if size > 1 else "one point a request: requests/s"
    )
    shown = {n: f"{number(rate[n])} ({rate[n] / base:.0f} ×), p99 {p99[n]:.0f} ms, {failed[n]} failed" for n in ("onward", "native")}
    why = next((o.why for n in ("onward", "native") for o in found[n] if o.why), "")
    table.row(
        what,
        onward=f"{shown['onward']}; native: {shown['native']}",
        peers=f"mlflow {number(rate['mlflow'])}, p99 {p99['mlflow']:.0f} ms, {failed['mlflow']} failed"
        + (f"; the disk alone, a page flushed after another: {number(limit)}" if limit else ""),
        goal="≥ 50 × MLflow, none failed",
        met=rate["onward"] >= 50 * base and not failed["onward"] and not failed["native"],
    )
    if why:
        table.note(f"the first failure: {why[:200]}")


def _new_run(server: Server) -> str:
    made = server.asked("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": "0", "run_name": "bench", "start_time": _STAMP})
    return str(made["run"]["info"]["run_id"])


def _mlflow(run: str, size: int) -> tuple[str, str]:
    """Steps rise from request to request: the mark stands for thousands."""
    if size == 1:
        return "/api/2.0/mlflow/runs/log-metric", f'{{"run_id":"{run}","key":"one","value":0.5,"timestamp":{_STAMP},"step":@@@@@@}}'
    points = ",".join(f'{{"key":"loss","value":{0.1 + i / 7:.6f},"timestamp":{_STAMP},"step":@@@@@@{i:03d}}}' for i in range(size))
    return "/api/2.0/mlflow/runs/log-batch", f'{{"run_id":"{run}","metrics":[{points}],"params":[],"tags":[]}}'


def _native(run: str, size: int) -> tuple[str, str]:
    path = f"/api/v1/runs/{run}/metrics"
    at = _STAMP // 1000
    if size == 1:
        return path, f'{{"name":"one","value":0.5,"timestamp":{at},"step":@@@@@@}}'
    points = ",".join(f'{{"name":"loss","value":{0.1 + i / 7:.6f},"timestamp":{at},"step":@@@@@@{i:03d}}}' for i in range(size))
    return path, f'{{"points":[{points}]}}'


def _flushes(folder: Path) -> float:
    """A second, of a page each, in a file that is as long already: no lone client that waits for each of its points can have more."""
    path, count, pages = folder / "flushed", 0, 4000
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(handle, bytes(4096 * pages))
        os.fsync(handle)
        began = time.perf_counter()
        while time.perf_counter() - began < 0.5:
            os.pwrite(handle, b"x" * 4096, 4096 * (count % pages))
            os.fdatasync(handle)
            count += 1
        return count / (time.perf_counter() - began)
    finally:
        os.close(handle)
        path.unlink()
