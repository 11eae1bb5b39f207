"""Runs to look at on a screen: folders with histories, metrics and logs, also under names that would break one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onward.errors import OnwardError
from onward.model import events as ev
from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Gpus, Node, NodeState, Queue
from onward.model.job import JobId, JobState
from onward.model.run import LegEnd
from onward.tui.sources.interface import (
    ChartSeries,
    GpuReading,
    ListedAlert,
    ListedAlerts,
    ListedRun,
    ListedRuns,
    LogWindow,
    ShownCluster,
    ShownRun,
    Stream,
)
from onward.tui.sources.log_lines import lines_of
from tests.sandbox import NOON, PlayedRun, Sandbox

HOSTILE = (
    "<script>alert(1)</script>",
    "[red]loud[/red] [/] [bold",
    "\u202eeman-desrever \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "n" * 300,
    "\x1b[2J\x1b[31mescape\x07 \x00 tab\there\nline",
    "宽宽宽宽宽宽宽宽宽宽 e\u0301 👩‍🚀 \ufeff",
    "{dict!r} %s $(rm) '\"`",
    " ",
)


def populate(folder: Path, *, at: float = NOON) -> Sandbox:
    """A run at work in its second leg, one that failed, one that waits, one that finished; all from about this time."""
    sandbox = Sandbox(folder)
    sandbox.clock.sleep(at - NOON)
    train(sandbox.play("digits"), legs=2)
    failed = sandbox.play("broken").begin(1, successor=False)
    metrics(failed, 1, range(12), slope=9.0)
    write_log(failed, 1, "err", ["Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: shapes do not match"])
    failed.write(
        ev.Ended(leg=1, at=failed.now(), end=LegEnd.CRASHED, reason="ValueError: shapes do not match", evidence="ValueError: shapes")
    )
    failed.write(
        ev.Closed(
            leg=1, at=failed.now(), state="failed", cause="the same crash twice", next="onward resume it", evidence="ValueError: shapes"
        )
    )
    failed.dir.done.write_text("{}")
    sandbox.play("patient")
    done = sandbox.play("finished").begin(1)
    metrics(done, 1, range(100), slope=30.0, total=100)
    write_log(done, 1, "out", [f"epoch {n}" for n in range(40)])
    done.end(1, LegEnd.DONE)
    return sandbox


def train(run: PlayedRun, *, legs: int) -> PlayedRun:
    """Through so many legs, the last of them at work; each goes on from a checkpoint and logs some steps again."""
    for leg in range(1, legs + 1):
        run.begin(leg)
        if leg > 1:
            run.write(ev.Restored(leg=leg, at=run.now(), step=100 * (leg - 1) - 1, checkpoint="c"))
        metrics(run, leg, range(100 * (leg - 1), 100 * leg + 20), slope=60.0, total=1000)
        gpus(run, leg)
        write_log(run, leg, "out", [f"leg {leg} step {n} loss {math.exp(-n / 60):.4f}" for n in range(100 * (leg - 1), 100 * leg)])
        write_log(run, leg, "err", [f"warning {n} of leg {leg}" for n in range(5)])
        run.later(600).publish(leg, 100 * leg - 1)
        if leg < legs:
            run.end(leg, LegEnd.TIME_LIMIT)
    return run


def metrics(run: PlayedRun, leg: int, steps: range, *, slope: float, total: int | None = None) -> None:
    at = run.now()
    points = [
        {"t": at + 5 * n, "s": step, "m": {"train/loss": math.exp(-step / slope), "val/accuracy": 1 - math.exp(-step / slope)}}
        for n, step in enumerate(steps)
    ]
    run.log(leg, {"kind": "init", "t": at, "total": total}, *points)


def gpus(run: PlayedRun, leg: int) -> None:
    figures = {"percent": 87.0, "mem_used_mib": 30_000.0, "mem_total_mib": 81_920.0, "power_w": 312.4, "temperature_c": 61.0}
    lines = [
        {
            "n": n,
            "t": run.now() + 10 * n,
            "kind": "system",
            "m": {f"gpu/GPU-{card}/{name}": value for card in ("aaaa", "bbbb") for name, value in figures.items()},
        }
        for n in range(30)
    ]
    (run.dir.spool / f"leg-{leg:04d}.system.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def write_log(run: PlayedRun, leg: int, stream: str, lines: list[str]) -> None:
    run.dir.log(leg, stream).write_text("".join(f"{one}\n" for one in lines))


class FakeSource:
    """A source in memory. `away`: it raises, as a server does that is gone. What was asked of it is kept."""

    def __init__(
        self, *rows: ListedRun, words: str = "a fake", log: Sequence[str] = (), keys: Sequence[str] = ("train/loss", "val/loss")
    ) -> None:
        self.rows = rows
        self.words = words
        self.keys = tuple(keys)
        self.text = "".join(f"{one}\n" for one in log).encode()
        self.away: OnwardError | None = None
        self.filters: list[str] = []
        self.drawn: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.stopped: list[str] = []
        self.clusters: dict[str, ClusterSnapshot | None] = {}
        self.page: str | None = "http://lab:8765/runs/"
        self.closed = False
        self.parts = 0  # answers about metrics until all of them are read
        self.reading = False
        self.unread: OnwardError | None = None  # why no metrics can be read
        self.notices: tuple[ListedAlert, ...] = ()

    def runs(self, filter: str) -> ListedRuns:
        self._answer()
        self.filters.append(filter)
        return ListedRuns(rows=tuple(row for row in self.rows if filter in row.name))

    def detail(self, run: str) -> ShownRun:
        self._answer()
        row = next(row for row in self.rows if row.id == run)
        gpu = GpuReading(node="n1", uuid="GPU-12345678", percent=50.0, mem_used=1024.0, mem_total=4096.0, history=(1.0, 50.0))
        return ShownRun(row=row, facts=(("command", "python train.py"),), gpus=(gpu,))

    def metrics(self, run: str) -> tuple[str, ...]:
        self._answer()
        if self.unread:
            raise self.unread
        self.reading, self.parts = self.parts > 0, max(self.parts - 1, 0)
        return () if self.reading else self.keys

    def series(self, runs: Sequence[str], keys: Sequence[str], *, points: int) -> tuple[ChartSeries, ...]:
        self._answer()
        self.drawn.append((tuple(runs), tuple(keys)))
        steps = tuple(float(n) for n in range(50))
        times = tuple(1000.0 + n for n in range(50))
        values = tuple(100.0 / (n + 1) for n in range(50))
        return tuple(
            ChartSeries(run=run, key=key, steps=steps, times=times, lows=values, highs=values, points=50, began=1000.0)
            for run in runs
            for key in keys
        )

    def log(self, run: str, stream: Stream, *, leg: int | None, around: int | None) -> LogWindow | None:
        self._answer()
        if stream != "out" or not self.text:
            return None
        lines, end = lines_of(lambda at, limit: self.text[at : at + limit], len(self.text), around)
        return LogWindow(leg=leg or 2, stream=stream, lines=lines, size=len(self.text), end=end, legs=(1, 2))

    def search(self, run: str, log: LogWindow, text: str, *, after: int, back: bool) -> int | None:
        at = self.text.rfind(text.encode(), 0, after) if back else self.text.find(text.encode(), after)
        return None if at < 0 else self.text.rfind(b"\n", 0, at) + 1

    def picture(self, cluster: str | None) -> ShownCluster:
        self._answer()
        name = cluster or next(iter(self.clusters), "local")
        found = self.clusters.get(name)
        return ShownCluster(name=name, snapshot=found, age=3.0, trouble="" if found else "no snapshot yet", others=tuple(self.clusters))

    def alerts(self) -> ListedAlerts:
        self._answer()
        return ListedAlerts(notices=self.notices, note="" if self.notices else "no rules: add them on the web page")

    def stop(self, run: str) -> str:
        self.stopped.append(run)
        return "it is asked to save and stop"

    def link(self, run: str) -> str | None:
        return f"{self.page}{run}" if self.page else None

    def close(self) -> None:
        self.closed = True

    def _answer(self) -> None:
        if self.away:
            raise self.away


def row(name: str, state: str = "running", **others: Any) -> ListedRun:
    usual: dict[str, Any] = {"id": f"id-{name}"[:40], "why": f"why of {name}", "fraction": 0.5, "legs": 2, "created": NOON}
    return ListedRun(name=name, state=state, **{**usual, **others})


def cluster() -> ClusterSnapshot:
    """Three nodes, a job of mine that waits, one of somebody else's that runs."""
    nodes = (
        Node(name="n1", state=NodeState.FULL, cpus=8, cpus_used=8, mem=65_536, mem_used=65_536, gpus=(Gpus(type="a100", total=4, used=4),)),
        Node(name="n2", state=NodeState.FREE, cpus=8, mem=65_536),
        Node(name="n3", state=NodeState.DRAINED, why="bad fan", cpus=8, mem=65_536),
    )
    waits = ClusterJob(
        id=JobId("12"), name="digits.1.ab", user="ada", mine=True, state=JobState.QUEUED, queue="gpu", asked=Asked(cpus=4, time=3600),
        expected_start=NOON + 3600, reason="it waits for room", native="Resources",
    )  # fmt: skip
    runs = ClusterJob(
        id=JobId("11"),
        name="other",
        user="bob",
        mine=False,
        state=JobState.RUNNING,
        queue="gpu",
        asked=Asked(cpus=8),
        nodes=("n1",),
        started=NOON,
    )
    queues = (Queue(name="gpu", nodes=("n1", "n2", "n3"), default=True),)
    return ClusterSnapshot(scheduler="slurm", taken_at=NOON, user="ada", nodes=nodes, queues=queues, jobs=(waits, runs))
