"""What a server needs as its store grows from 1 M to 10 M points that came over HTTP: memory, and bytes a point on disk.

50 runs of ten metrics, their values and times as a training's are: a curve with noise in it, in half of them of 32 bits as a tensor gives
them, and steps that take a little more or less time.
"""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

from bench.tracker_clients import Load, driven
from bench.tracker_fill import STAMP, new_runs
from bench.tracker_servers import Server, onward_up
from bench.tracker_table import Table

RUNS, METRICS, STEPS = 50, 10, 100  # a request: ten metrics of a hundred steps
FIRST, LAST = 1_000_000, 10_000_000
_CLIENTS = 4
_BODIES = 44  # of each client: no chunk of 4,096 points has one twice


def measure(table: Table, work: Path) -> None:
    with onward_up(work) as server:
        runs = new_runs(server, RUNS)
        at_rest = server.memory
        sent = _grow(server, runs, 0, FIRST)
        first = _memory(server, runs)
        sent += _grow(server, runs, sent, LAST)
        last = _memory(server, runs)
        grown = _bytes(work)
    _tidy(work)
    tidied = _bytes(work)
    table.row(
        f"memory after {FIRST / 1e6:.0f} M and after {sent / 1e6:.1f} M points, charts read after both",
        onward=f"{first:.0f} MB and {last:.0f} MB ({last / first:.2f} ×); {at_rest:.0f} MB before",
        peers="mlflow: an hour at its pace, left out",
        goal="flat: ≤ 1.1 ×",
        met=last <= 1.1 * first,
    )
    table.row(
        f"bytes a point on disk, {sent / 1e6:.1f} M points",
        onward=f"{tidied / sent:.1f} after compaction, {grown / sent:.1f} before",
        peers="mlflow: among the charts",
        goal="≤ 16",
        met=tidied / sent <= 16,
    )


def _grow(server: Server, runs: list[str], sent: int, until: int) -> int:
    """How many points were stored."""
    each = METRICS * STEPS
    stored = 0
    chance = random.Random(sent)
    for number, group in enumerate(range(0, len(runs), _CLIENTS)):
        some = runs[group : group + _CLIENTS]
        wanted = (until - sent) * (number + 1) * _CLIENTS // len(runs) if group + _CLIENTS < len(runs) else until - sent
        while stored < wanted:
            first = (sent + stored) // each + 1
            requests = [(f"/api/v1/runs/{run}/metrics", _body(chance)) for _ in range(_BODIES) for run in some]
            count = -(-(wanted - stored) // (each * len(some)))
            load = Load(
                port=server.port, clients=len(some), seconds=60, requests=requests, headers=dict(server.headers), first=first, count=count
            )
            outcome = driven(load)
            if outcome.failed:
                raise RuntimeError(f"{outcome.failed} requests failed: {outcome.why}")
            stored += outcome.answered * each
    return stored


def _body(chance: random.Random) -> str:
    """The mark stands for a hundred steps."""
    points = []
    for step in range(STEPS):
        at = round(STAMP / 1000 + step / 10 + chance.random() / 100, 6)
        for metric in range(METRICS):
            answer = 2 / (1 + step / 50) + chance.gauss(0, 0.05)
            exact = struct.unpack("f", struct.pack("f", answer))[0] if metric % 2 else answer
            points.append(f'{{"name":"metric_{metric}","value":{exact!r},"timestamp":{at!r},"step":@@@@@@{step:02d}}}')
    return f'{{"points":[{",".join(points)}]}}'


def _memory(server: Server, runs: list[str]) -> float:
    for first in [*range(0, len(runs), 10)] * 4:
        server.asked("POST", "/api/v1/series/search", {"runs": runs[first : first + 10], "metrics": ["metric_0", "metric_1"]})
    time.sleep(2)
    return server.memory


def _bytes(folder: Path) -> int:
    return sum(os.path.getsize(path) for path in folder.glob("onward.db*"))


def _tidy(folder: Path) -> None:
    """What the server does by itself when runs have been quiet for half a minute."""
    from onward.tracker.store import Tracker

    with Tracker.open(folder / "onward.db") as tracker:
        tracker.upkeep.tidy(resting=0)
        before = -1
        while before != (now := os.path.getsize(folder / "onward.db")):
            before = now
            tracker.upkeep.shrink()
