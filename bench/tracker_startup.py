"""A server's start and rest: seconds to its first answer, memory and processes when nothing happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.tracker_servers import Server, mlflow_up, onward_up, trackio_up
from bench.tracker_table import Table, median

_REST = 3.0  # seconds after its first answer


@dataclass(frozen=True, kw_only=True)
class Found:
    ready: float
    cpu: float  # seconds of processors until then
    memory: float
    processes: int


def measure(table: Table, work: Path) -> None:
    ours = _looked_at(onward_up, work / "onward", repeats=5)
    trackio = _looked_at(trackio_up, work / "trackio", repeats=3)
    mlflow = _looked_at(mlflow_up, work / "mlflow", repeats=1)
    table.row(
        "server ready",
        onward=f"{ours.ready:.2f} s, {ours.cpu:.2f} s of CPU",
        peers=f"trackio {trackio.ready:.2f} s ({trackio.cpu:.2f} s), mlflow {mlflow.ready:.1f} s ({mlflow.cpu:.1f} s)",
        goal="≤ 1.2 s",
        met=ours.ready <= 1.2,
    )
    table.row(
        "memory at rest",
        onward=f"{ours.memory:.0f} MB in {ours.processes} process{'es' if ours.processes > 1 else ''}",
        peers=f"trackio {trackio.memory:.0f} MB in {trackio.processes}, mlflow {mlflow.memory:.0f} MB in {mlflow.processes}",
        goal="≤ 90 MB in one process",
        met=ours.memory <= 90 and ours.processes == 1,
    )


def _looked_at(up: Callable[[Path], AbstractContextManager[Server]], folder: Path, *, repeats: int) -> Found:
    """Its store is there already: the first start, which makes it, does not count where there are several."""
    ready, cpu, memory, processes = [], [], [], 0
    for number in range(repeats + (repeats > 1)):
        with up(folder) as server:
            cpu.append(server.cpu)
            if number or repeats == 1:
                time.sleep(_REST if number == repeats or repeats == 1 else 0)
                ready.append(server.ready)
                memory.append(server.memory)
                processes = max(processes, len(server.processes))
    return Found(ready=median(ready), cpu=median(cpu), memory=memory[-1], processes=processes)
