"""A server over 100,000 runs that are over and 20 that are open: calls to the file system in a minute, time of a look, memory.

    python bench/tracker_old_runs.py [--runs 100000] [--seconds 60]

The folders are real ones with a spec, a journal and a spool, the store has a row for each. Calls are counted where Python makes them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.tracker_table import machine
from onward.model import events as ev
from onward.model.spec import spec_to_json
from onward.operations.repair.tend import tend
from onward.rundir.layout import RunDir
from onward.tracker.store import Tracker
from tests.histories import make_spec
from tests.sandbox import Sandbox

_AT = 1_700_000_000.0
_RECORD = '{"n":0,"t":1700000000.0,"s":1,"m":{"loss":1.0}}\n'


def main() -> None:
    parser = argparse.ArgumentParser(description="A server over many runs that are over.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--open", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=60, help="looks that are counted, one a second of a real server")
    options = parser.parse_args()
    print(f"# bench/tracker_old_runs.py, {machine()}, {options.runs:,} runs that are over, {options.open} open")
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder))
        root = sandbox.context.root
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:  # so that its memory is not counted
            apart.submit(_make, root, Path(folder) / "onward.db", options.runs, options.open).result()
        with Tracker.open(Path(folder) / "onward.db") as tracker:
            began, cpu = time.perf_counter(), time.process_time()
            with _Counted(str(root)) as calls:
                tracker.files.look([root])
            print(f"first look: {time.perf_counter() - began:.2f} s, {time.process_time() - cpu:.2f} s CPU, {calls}")
            began, cpu = time.perf_counter(), time.process_time()
            with _Counted(str(root)) as calls:
                for second in range(options.seconds):
                    tracker.files.look([root])
                    if second % 30 == 0:
                        tend(sandbox.context, among=tracker.files.open_folders())
            took, spent = time.perf_counter() - began, time.process_time() - cpu
            print(f"a minute of looks and tending: {took:.2f} s, {spent:.2f} s CPU, {calls}")
            print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


class _Counted:
    """Calls about anything below a folder."""

    _NAMES = ("stat", "lstat", "scandir", "listdir", "open")

    def __init__(self, below: str) -> None:
        self._below = below
        self._real: dict[str, Any] = {}
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> _Counted:
        for name in self._NAMES:
            self._real[name] = getattr(os, name)
            setattr(os, name, self._counting(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _counting(self, name: str) -> Any:
        real = self._real[name]

        def call(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            if not isinstance(path, int) and os.fspath(path).startswith(self._below):
                self.counts[name] += 1
            return real(path, *args, **kwargs)

        return call

    def __str__(self) -> str:
        return f"{sum(self.counts.values()):,} calls ({', '.join(f'{count:,} {name}' for name, count in self.counts.most_common())})"


def _make(root: Path, db: Path, over: int, open_runs: int) -> None:
    began = time.perf_counter()
    closed = ev.Closed(leg=1, at=_AT, state="finished", cause="done").line() + "\n"
    claimed = ev.Claimed(leg=1, at=_AT, job="1", hosts=["n1"], deadline=None).line() + "\n"
    rows = []
    for n in range(over + open_runs):
        id, folder = f"r{n:07d}", root / f"20{10 + n // 10_000:02d}-{1 + n // 900 % 12:02d}-{1 + n // 40 % 28:02d}_A_run{n}"
        for room in ("params", "journal", "spool"):
            (folder / room).mkdir(parents=True)
        spec = json.dumps(spec_to_json(make_spec(id=id, name=f"run{n}")))
        (folder / "params" / "spec.json").write_text(spec)
        (folder / "journal" / "leg-0001.jsonl").write_text(claimed + (closed if n < over else ""))
        (folder / "spool" / "leg-0001.train-1.jsonl").write_text(_RECORD)
        if n < over:
            RunDir(folder).done.write_text("{}")
            at, details = _AT + 864 * n, json.dumps({"spec": json.loads(spec)})
            rows.append((id, f"{n:032x}", f"run{n}", "finished", str(folder), at, at, details))
    with Tracker.open(db) as tracker:
        tracker.experiments.ensure("bench")

        def fill(batch: Any) -> None:
            batch.connection.exec_driver_sql(
                "INSERT INTO runs (run_id, hex_id, experiment, name, state, source, folder, created, updated, details, version)"
                " VALUES (?, ?, 1, ?, ?, 'onward', ?, ?, ?, ?, 1)",
                rows,
            )
            batch.connection.exec_driver_sql(
                "INSERT INTO positions (run, file, \"offset\", size, head) SELECT id, ?, ?, ?, '' FROM runs",
                [("journal/leg-0001.jsonl", *[len(claimed + closed)] * 2), ("spool/leg-0001.train-1.jsonl", *[len(_RECORD)] * 2)],
            )

        tracker.write(fill)
    print(f"made in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
