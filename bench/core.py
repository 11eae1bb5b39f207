"""What the core costs: importing the SDK, `onward --help`, and a pass of `tend` over 1 and over 1,000 runs.

Each figure is a median of repeats, beside its limit in the same run: bare Python, and the scheduler calls for one run.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHIM = """#!{python}
import os, sys
with open(os.environ["BENCH_CALLS"], "a") as calls:
    calls.write(os.path.basename(sys.argv[0]) + "\\n")
if os.path.basename(sys.argv[0]) == "squeue":
    sys.stdout.write(open(os.environ["BENCH_QUEUE"]).read())
"""


def wall(argv: list[str], *, repeats: int = 15) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def make_runs(root: Path, count: int, queue: Path) -> None:
    """Runs in their third leg, with the events such a run has; the third leg's jobs are in the queue."""
    lines = []
    for number in range(count):
        folder = root / f"2026-11-15_{chr(65 + number % 26)}_bench{number}"
        for part in ("params/claims", "journal", "spool", "logs", "results/checkpoints"):
            (folder / part).mkdir(parents=True)
        spec = {
            "schema": 1,
            "id": f"b{number:07d}",
            "name": f"bench{number}",
            "experiment": "bench",
            "command": ["true"],
            "workdir": "/",
            "created": 1.0,
            "user": "x",
            "cluster": {"name": "slurm", "scheduler": "slurm"},
            "resources": {"time": 3600},
            "limits": {},
            "checkpoints": {},
        }
        (folder / "params" / "spec.json").write_text(json.dumps(spec))
        for leg in (1, 2, 3):
            job = 1_000_000 + number * 3 + leg
            events: list[dict[str, object]] = [
                {"kind": "submitting", "leg": leg, "at": float(leg), "name": f"bench{number}.{leg}.t"},
                {"kind": "submitted", "leg": leg, "at": float(leg), "name": f"bench{number}.{leg}.t", "job": str(job)},
                {"kind": "claimed", "leg": leg, "at": leg + 0.1, "job": str(job), "hosts": ["n1"], "deadline": None},
                {"kind": "started", "leg": leg, "at": leg + 0.2, "pid": 1},
            ]
            published = {"kind": "published", "leg": leg, "at": leg + 0.3, "bytes": 1, "save_seconds": 0.1, "stage_seconds": 0.1}
            events += [{**published, "step": leg * 100 + step} for step in range(8)]
            if leg < 3:
                events.append({"kind": "ended", "leg": leg, "at": leg + 0.9, "end": "time_limit", "reason": "stopped in time"})
            else:
                lines.append(f"{job}|bench{number}.{leg}.t|RUNNING|None|n1|1|1|1")
            text = "".join(json.dumps(event) + "\n" for event in events)
            (folder / "journal" / f"leg-{leg:04d}.jsonl").write_text(text)
    queue.write_text("\n".join(lines) + "\n")


def tend(count: int) -> tuple[float, int]:
    """CPU seconds of one pass, and scheduler calls."""
    work = Path(tempfile.mkdtemp(prefix="onward-bench-"))
    try:
        for program in ("squeue", "sacct", "sbatch", "scancel", "scontrol"):
            (work / program).write_text(SHIM.format(python=sys.executable))
            (work / program).chmod(0o755)
        make_runs(work / "runs", count, work / "queue")
        from onward.operations.context import OperationsContext
        from onward.operations.repair.tend import tend as tend_all
        from onward.schedulers import command

        command._PASSED = (*command._PASSED, "BENCH_CALLS", "BENCH_QUEUE")  # type: ignore[assignment]
        os.environ.update(BENCH_CALLS=str(work / "calls"), BENCH_QUEUE=str(work / "queue"), PATH=f"{work}:{os.environ['PATH']}")
        context = OperationsContext(env={**os.environ, "ONWARD_ROOT": str(work / "runs")})
        costs = []
        for _ in range(5):
            (work / "calls").write_text("")
            before = resource.getrusage(resource.RUSAGE_SELF)
            done = tend_all(context)
            after = resource.getrusage(resource.RUSAGE_SELF)
            assert done.looked_at == count and not done.acted and not done.problems, done
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return statistics.median(costs), len((work / "calls").read_text().split())
    finally:
        shutil.rmtree(work)


def main() -> None:
    bare = wall([sys.executable, "-c", "pass"])
    imported = wall([sys.executable, "-c", "import onward"])
    used = wall([sys.executable, "-c", "import onward; onward.Run"])
    helped = wall([sys.executable, "-m", "onward", "--help"])
    one, calls_one = tend(1)
    many, calls_many = tend(1000)
    print(f"bare python                  {bare * 1e3:7.1f} ms")
    print(f"import onward                {imported * 1e3:7.1f} ms   {imported / bare:5.2f} × bare python (goal ≤ 3)")
    print(f"import onward, and use it    {used * 1e3:7.1f} ms   {used / bare:5.2f} × bare python")
    print(f"onward --help                {helped * 1e3:7.1f} ms   (goal ≤ 250)")
    print(f"tend, 1 run                  {one * 1e3:7.1f} ms CPU, {calls_one} scheduler calls")
    print(f"tend, 1,000 runs             {many * 1e3:7.1f} ms CPU, {calls_many} scheduler calls (goal ≤ 1,000 ms, the same calls)")


if __name__ == "__main__":
    main()
