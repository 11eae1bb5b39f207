"""360 processes, as of one job array, start a run at once: each makes its run and logs a point, all let go at the same moment.

They are forked beforehand and wait, so that what is measured is the tracker, not the start of 360 Pythons on this machine. That is told
too.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from bench.tracker_fill import STAMP
from bench.tracker_servers import Server, mlflow_up, onward_up
from bench.tracker_table import Table

COUNT = 360
_WITHIN = 60.0
Start = Callable[[int], bool]


def measure(table: Table, work: Path) -> None:
    import onward.sdk.process_run  # noqa: F401 - loaded before they are forked

    with onward_up(work / "onward") as server:
        root = work / "onward" / "runs"
        by_sdk = _all_at_once(lambda number: _start_by_sdk(root))
        until = time.monotonic() + 30
        shown = 0
        while shown < COUNT and time.monotonic() < until:
            time.sleep(0.1)
            shown = server.asked("GET", "/api/v1/runs?limit=1&count=true")["total"]
        seen = time.monotonic() - (until - 30)
        native = _all_at_once(lambda number: _start(server, _NATIVE, number))
        same = _all_at_once(lambda number: _start(server, _MLFLOW, number))
        cold, bare = _cold(_SCRIPT, {"ONWARD_ROOT": str(root)}), _cold("pass", {})
    with mlflow_up(work / "mlflow") as server:
        theirs = _all_at_once(lambda number: _start(server, _MLFLOW, number))
    answer = f"mlflow's server: {theirs[0]} in {theirs[1]:.1f} s"
    ways = (("onward.init() and log()", by_sdk), ("our API", native), ("MLflow's protocol", same))
    for what, (good, seconds) in ways:
        table.row(
            f"{COUNT} processes start a run by {what}",
            onward=f"{good} succeed, the last after {seconds:.2f} s",
            peers=answer if what == "MLflow's protocol" else "–",
            goal="all within 5 s",
            met=good == COUNT and seconds <= 5,
        )
    table.row(
        f"{COUNT} Pythons started for it, too: import, init(), log(), end",
        onward=f"{cold[0]} succeed, {cold[1]:.1f} s, {cold[1] / bare[1]:.1f} × bare",
        peers=f"`python -c pass` {bare[1]:.1f} s",
    )
    table.row("… and the server shows those of the SDK", onward=f"{shown}, {seen:.1f} s later", goal="all", met=shown == COUNT)


def _all_at_once(start: Start) -> tuple[int, float]:
    """How many succeeded, and the seconds until the last of those had."""
    context = multiprocessing.get_context("fork")
    go = context.Event()
    pipes: list[Connection] = []
    processes = []
    try:
        for number in range(COUNT):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_one, args=(start, number, go, theirs), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        for pipe in pipes:
            pipe.recv()  # it waits
        began = time.time()
        go.set()
        ends = [_told(pipe, began + _WITHIN) for pipe in pipes]
    finally:
        for process in processes:
            process.kill()
            process.join()
        for pipe in pipes:
            pipe.close()
    good = [end for end in ends if end is not None]
    return len(good), max(good, default=began) - began


def _told(pipe: Connection, until: float) -> float | None:
    with contextlib.suppress(EOFError, OSError):
        if pipe.poll(max(0.0, until - time.time())):
            found: float | None = pipe.recv()
            return found
    return None


def _one(start: Start, number: int, go: Event, pipe: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    pipe.send(None)
    go.wait()
    good = False
    with contextlib.suppress(Exception):
        good = start(number)
    pipe.send(time.time() if good else None)


_SCRIPT = "import onward; onward.init(name='array').log({'loss': 1.0}, step=0)"


def _cold(script: str, env: Mapping[str, str]) -> tuple[int, float]:
    """How many ended well, and the seconds until the last had."""
    began = time.monotonic()
    quiet = subprocess.DEVNULL
    words, given = [sys.executable, "-c", script], {**os.environ, **env}
    processes = [subprocess.Popen(words, env=given, stdout=quiet, stderr=quiet) for _ in range(COUNT)]
    try:
        return sum(process.wait(120) == 0 for process in processes), time.monotonic() - began
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _start_by_sdk(root: Path) -> bool:
    os.environ["ONWARD_ROOT"] = str(root)
    import onward

    run = onward.init(name="array", params={"seed": os.getpid()})
    run.log({"loss": 1.0}, step=0)
    return any((run.folder / "spool").iterdir())


_NATIVE: Mapping[str, Any] = {
    "make": ("/api/v1/runs", {"experiment": "array", "name": "array"}),
    "id": lambda answer: answer["id"],
    "log": lambda run: (f"/api/v1/runs/{run}/metrics", {"name": "loss", "value": 1.0, "step": 0}),
}
_MLFLOW: Mapping[str, Any] = {
    "make": ("/api/2.0/mlflow/runs/create", {"experiment_id": "0", "run_name": "array", "start_time": STAMP}),
    "id": lambda answer: answer["run"]["info"]["run_id"],
    "log": lambda run: ("/api/2.0/mlflow/runs/log-metric", {"run_id": run, "key": "loss", "value": 1.0, "timestamp": STAMP, "step": 0}),
}


def _start(server: Server, way: Mapping[str, Any], number: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_WITHIN)

    def ask(path: str, body: object) -> Any:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **server.headers})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status} {text[:100]!r}")
        return json.loads(text)

    run = way["id"](ask(*way["make"]))
    ask(*way["log"](run))
    return True
