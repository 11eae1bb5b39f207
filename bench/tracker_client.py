"""What log() costs the training: microseconds blocked for 1 and for 20 metrics a step, and what a killed process loses.

A server reads the run's folder while it grows (up), hardly gets to run and answers half a second late (slow), or is not there (down).
Beside it csv and jsonl lines that are flushed, trackio, and MLflow's client with its server. All in turn, round by round.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.tracker_delay import delayed
from bench.tracker_servers import Server, end, mlflow_up, onward_up, peers_python
from bench.tracker_table import Table, median

LOOP = str(Path(__file__).with_name("tracker_client_loop.py"))
ROUNDS = 3
STEPS, SECONDS = 20_000, 2.0
_LATE = 0.5  # seconds
_KILLED_AT = 2000
Found = dict[str, list[Mapping[str, float]]]


def measure(table: Table, work: Path) -> None:
    with onward_up(work / "up") as server, mlflow_up(work / "mlflow") as mlflow, delayed(mlflow.port, _LATE) as late:
        for metrics in (1, 20):
            found: Found = {}
            for number in range(ROUNDS):
                _round(found, server, work / f"{metrics}-{number}", metrics)
            found["mlflow"] = [_logged("mlflow", metrics, work / "m", {"MLFLOW_TRACKING_URI": mlflow.url})]
            late_to = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{late}"}
            found["mlflow, slow"] = [_logged("mlflow", metrics, work / "s", late_to, steps=5)]
            _tell(table, metrics, found)
    _kills(table, work)


def _round(found: Found, server: Server, work: Path, metrics: int) -> None:
    for system in ("csv", "jsonl", "trackio"):
        found.setdefault(system, []).append(_logged(system, metrics, work / system))
    found.setdefault("down", []).append(_logged("onward", metrics, work / "down", {"ONWARD_ROOT": str(work / "down" / "runs")}))
    env = {"ONWARD_ROOT": str(server.folder / "runs"), "TRACKER_API": server.url, "MLFLOW_TRACKING_URI": server.url}
    found.setdefault("up", []).append(_logged("onward", metrics, work / "up", env))
    with _hardly_running(server), delayed(server.port, _LATE) as late:
        env |= {"TRACKER_API": f"http://127.0.0.1:{late}", "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{late}"}
        found.setdefault("slow", []).append(_logged("onward", metrics, work / "up", env))


def _logged(system: str, metrics: int, folder: Path, env: Mapping[str, str] | None = None, *, steps: int = STEPS) -> Mapping[str, float]:
    words = [_python(system), LOOP, system, f"{metrics}", f"{steps}", f"{SECONDS}", "0", str(folder)]
    given = {**os.environ, "HOME": str(folder), **(env or {})}
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(words, env=given, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("measured ")), None)
    if line is None:
        raise RuntimeError(f"{system} did not log:\n{done.stdout[-1000:]}\n{done.stderr[-1000:]}")
    measured: Mapping[str, float] = json.loads(line.removeprefix("measured "))
    return measured


def _python(system: str) -> str:
    return peers_python() if system in ("trackio", "mlflow") else sys.executable


def _tell(table: Table, metrics: int, found: Found) -> None:
    mid = {(system, what): median([one[what] for one in ones]) for system, ones in found.items() for what in ("p50", "p99")}
    csv, jsonl, trackio = (mid[name, "p50"] for name in ("csv", "jsonl", "trackio"))
    words = f"{metrics} metric{'s' if metrics > 1 else ''} a step"
    for state in ("up", "slow", "down"):
        p50, p99, theirs = mid[state, "p50"], mid[state, "p99"], mid["trackio", "p99"]
        beside = f"csv {csv:.1f}, jsonl {jsonl:.1f}, trackio {trackio:.1f}"
        mlflow = mid.get(({"up": "mlflow", "slow": "mlflow, slow"}.get(state, ""), "p50"))
        table.row(
            f"{words}, server {state}: blocked p50 µs",
            onward=f"{p50:.1f}: {p50 / csv:.2f} × csv, {p50 / jsonl:.2f} × jsonl, {p50 / trackio:.2f} × trackio",
            peers=beside + (f", mlflow's client {mlflow:,.0f}" if mlflow else ""),
            goal="≤ 1.5 × csv, ≤ trackio",
            met=p50 <= 1.5 * csv and p50 <= trackio,
        )
        table.row(
            f"{words}, server {state}: blocked p99 µs",
            onward=f"{p99:.1f}: {p99 / theirs:.2f} × trackio",
            peers=f"csv {mid['csv', 'p99']:.1f}, jsonl {mid['jsonl', 'p99']:.1f}, trackio {theirs:.1f}",
            goal="≤ 0.5 × trackio",
            met=p99 <= 0.5 * theirs,
        )


@contextlib.contextmanager
def _hardly_running(server: Server) -> Iterator[None]:
    """Stopped nine tenths of the time."""
    over = threading.Event()

    def hinder() -> None:
        while not over.wait(0.05):
            os.kill(server.pid, signal.SIGSTOP)
            over.wait(0.45)
            os.kill(server.pid, signal.SIGCONT)

    thread = threading.Thread(target=hinder)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# ── killed ────────────────────────────────────────────────────────────────────


def _kills(table: Table, work: Path) -> None:
    """Steps of a millisecond, five metrics each; SIGKILL after 2,000 of them."""
    lost: dict[str, list[int]] = {}
    for number in range(ROUNDS):
        for system in ("csv", "trackio"):
            folder = work / f"kill-{system}-{number}"
            steps = _killed(system, folder, {})
            lost.setdefault(system, []).append(steps - (_lines(folder) if system == "csv" else _rows(folder)))
    up, down = work / "kill-up", work / "kill-down"
    with onward_up(up) as server:
        steps = sum(_killed("onward", up / f"{number}", {"ONWARD_ROOT": str(up / "runs")}) for number in range(ROUNDS))
        lost["up"] = [steps - _shown(server, steps)]
    steps = sum(_killed("onward", down / f"{number}", {"ONWARD_ROOT": str(down / "runs")}) for number in range(ROUNDS))
    with onward_up(down) as server:
        lost["down"] = [steps - _shown(server, steps)]
    said = {name: ", ".join(str(max(0, count)) for count in counts) for name, counts in lost.items()}
    for state in ("up", "down"):
        table.row(
            f"steps lost at SIGKILL (1 ms steps), server {'up' if state == 'up' else 'down, started afterwards'}, as the server shows them",
            onward=f"{said[state]} of {ROUNDS} kills together",
            peers=f"csv {said['csv']}, trackio {said['trackio']}",
            goal="0",
            met=max(lost[state]) <= 0,
        )


def _killed(system: str, folder: Path, env: Mapping[str, str]) -> int:
    """The steps it had logged when it was killed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [_python(system), LOOP, system, "5", "1000000", "600", "0.001", str(folder)]
    given = {**os.environ, "HOME": str(folder), **env}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, env=given, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        while _count(folder) < _KILLED_AT:
            if process.poll() is not None:
                raise RuntimeError(f"{system} ended before it could be killed")
            time.sleep(0.02)
        process.kill()
        process.wait()
        return _count(folder)
    finally:
        end(process, grace=0)


def _count(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((folder / "steps").read_text())
    return 0


def _lines(folder: Path) -> int:
    return (folder / "log.csv").read_bytes().count(b"\n")


def _rows(folder: Path) -> int:
    with contextlib.closing(sqlite3.connect(folder / "trackio" / "bench.db")) as db:
        return int(db.execute("select count(*) from metrics").fetchone()[0])


def _shown(server: Server, steps: int) -> int:
    """Points of all runs together, as the server has them, once they no longer become more."""
    points, until = 0, time.monotonic() + 30
    while points < steps and time.monotonic() < until:
        time.sleep(0.2)
        runs = [run["id"] for run in server.asked("GET", "/api/v1/runs")["runs"]]
        if runs:
            drawn = server.asked("POST", "/api/v1/series/search", {"runs": runs, "metrics": ["metric_0"], "buckets": 10})["series"]
            points = sum(one["points"] for one in drawn)
    return points
