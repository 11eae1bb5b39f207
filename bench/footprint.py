"""What a run costs the storage that all nodes share: metadata operations a second while it trains, and bytes and time a logged value.

    operations  a real run on this machine's queue under strace: it prints and logs 10 times a second and saves every 20 s. Calls
                with a path or a file in the run's folder are counted by process, for a minute after it has settled
    log         time of run.log() and bytes in the spool, by how many metrics a record has

Needs strace. Operations take about two minutes; `--part` chooses. `--script` submits a batch script with an output file instead.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ONWARD = Path(sys.executable).with_name("onward")
TRACED = "%file,%process,close,fsync,fdatasync,getdents64,fstat"
SETTLED, WINDOW = 30.0, 60.0  # seconds after its first line, and seconds counted
PARTS = ("operations", "log")
ROUNDS = 3
WIDTHS = (1, 10, 100, 1_000, 5_000)

TRAINING = """
import json, sys, time
import onward

run = onward.init(total_steps=100_000)
saved = time.time()
for step in range(100_000):
    print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
    run.log({"loss": 1 / (step + 1), "lr": 0.1}, step=step)
    if time.time() - saved >= 20:
        saved = time.time()
        with run.checkpoint(step) as folder:
            (folder / "model.bin").write_bytes(bytes(100_000))
            (folder / "optimizer.bin").write_bytes(bytes(200_000))
    if run.should_stop():
        sys.exit(75)
    time.sleep(0.1)
"""

_CALL = re.compile(r"^(\d+) +([\d.]+) (\w+)\((.*)$")
_RESUMED = re.compile(r"^(\d+) +[\d.]+ <\.\.\. (?:clone3?|v?fork) resumed>.*= (\d+)")
_CHILD = re.compile(r"= (\d+)(?:<.*>)?$")


def operations(*, script: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="onward-footprint-") as scratch:
        top = Path(scratch)
        work, runs, node, trace = top / "work", top / "runs", top / "node", top / "trace"
        for folder in (work, runs, node, top / "state"):
            folder.mkdir()
        (work / "train.py").write_text(TRAINING)
        env = {**os.environ, "ONWARD_ROOT": str(runs), "ONWARD_STATE_DIR": str(top / "state"), "TMPDIR": str(node), "HOME": str(top)}
        ask = [str(ONWARD), "submit", "--cluster", "local", "--time", "10:00"]
        if script:
            lines = f"#!/bin/bash\n#SBATCH -J footprint\n#SBATCH -o {runs}/%x-%j.out\n{sys.executable} train.py\n"
            (work / "train.sh").write_text(lines)
            ask += ["train.sh"]
        else:
            ask += ["--name", "footprint", "--", sys.executable, "train.py"]
        strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-y", "-ttt", "-s", "200", "-e", f"trace={TRACED}", "-e", "signal=none"]
        tracing = subprocess.Popen([*strace, "-o", str(trace), *ask], cwd=work, env=env, stdout=subprocess.DEVNULL)
        try:
            began = _first_line(runs)
            time.sleep(SETTLED + WINDOW + 1)
        finally:
            subprocess.run([ONWARD, "cancel", _run_of(runs).name], env=env, cwd=work, check=False)
            tracing.wait(60)
        count(trace, runs, since=began + SETTLED)


def _run_of(runs: Path) -> Path:
    return next(path for path in runs.iterdir() if (path / "params").is_dir())


def _first_line(runs: Path) -> float:
    """When the run's log was first seen."""
    give_up = time.monotonic() + 60
    while not any(path.stat().st_size for path in runs.glob("*/logs/leg-0001.out")):
        if time.monotonic() > give_up:
            raise SystemExit("the run prints nothing")
        time.sleep(0.2)
    return time.time()


def count(trace: Path, runs: Path, *, since: float) -> None:
    role: dict[str, str] = {}
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    paths: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for line in trace.read_text(errors="replace").splitlines():
        if resumed := _RESUMED.match(line):
            role[resumed[2]] = role.get(resumed[1], "?")
        call = _CALL.match(line)
        if not call:
            continue
        pid, at, name, rest = call.groups()
        if name in ("clone", "clone3", "fork", "vfork") and (child := _CHILD.search(rest)):
            role[child[1]] = role.get(pid, "?")
        if name == "execve" and rest.endswith("= 0"):
            role[pid] = _role(rest)
        rest = re.sub(r'AT_FDCWD<[^>]*>, (?="/)', "", rest)  # the folder that an absolute path is not seen from
        if str(runs) in rest and since <= float(at) < since + WINDOW and name not in ("execve", "clone", "clone3", "exit_group"):
            who = role.get(pid, "?")
            found[who, name] += 1
            where = re.search(re.escape(str(runs)) + r"/[^/\">]+/?([^\">]*)", rest)
            paths[who, name, re.sub(r"\d+", "0", where[1]) if where else rest[:80]] += 1
    total = sum(n for (who, _), n in found.items() if who != "training")
    saving = sum(n for (who, _, path), n in paths.items() if who != "training" and path.startswith("results/checkpoints"))
    renamed = {path: n for (_, name, path), n in paths.items() if name.startswith("rename")}
    published = sum(n for path, n in renamed.items() if path.endswith(".partial"))
    print(f"operations on the run's folder: {total / WINDOW:.2f} a second without the training's own; {published} checkpoints published")
    print(f"  {(total - saving) / WINDOW:.2f} a second outside the folder of checkpoints, {saving} in it")
    for who in sorted({who for who, _ in found}):
        mine = {name: n for (whose, name), n in found.items() if whose == who}
        print(f"  {who:<12} {sum(mine.values()) / WINDOW:6.2f} a second: {', '.join(f'{k} {v}' for k, v in sorted(mine.items()))}")
    for (who, name, path), n in paths.most_common(25):
        print(f"    {n:5d}  {who:<11} {name:<12} {path}")


def _role(arguments: str) -> str:
    if "supervisor.pyz" in arguments:
        return next((word for word in ("stage", "node", "leg") if f'"{word}"' in arguments), "supervisor")
    return "training" if "train." in arguments else "other"


def log() -> None:
    with tempfile.TemporaryDirectory(prefix="onward-footprint-") as scratch:
        for width, bits in itertools.product(WIDTHS, ("64", "32")):
            folder = Path(scratch, f"{width}-{bits}")
            env = {**os.environ, "ONWARD_SPOOL_DIR": str(folder), "ONWARD_LEG": "1", "ONWARD_RUN_ID": "bench", "ONWARD_RUN_DIR": scratch}
            env["ONWARD_CHECKPOINT_DIR"] = scratch
            command = [sys.executable, "-c", LOGGING, str(width), str(ROUNDS), bits]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            seconds, points = map(float, done.stdout.split())
            size = sum(path.stat().st_size for path in folder.iterdir())
            each = f"{seconds / points * 1e6:.3f} µs a metric, {size / points / ROUNDS:.1f} bytes a point"
            print(f"{width:5d} metrics a record, of {bits} bits: {each}")


LOGGING = """
import random, struct, sys, time
import onward


def value():
    drawn = random.gauss(0, 1)
    return drawn if sys.argv[3] == "64" else struct.unpack("f", struct.pack("f", drawn))[0]


width = int(sys.argv[1])
random.seed(0)
names = [f"layers.{i // 8}.block{i % 8}/grad_norm" for i in range(width)]
run = onward.init()
records = [{name: value() for name in names} for _ in range(20)]
count = max(40, 200_000 // width)
best = float("inf")
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    for step in range(count):
        run.log(records[step % 20], step=step)
    best = min(best, time.perf_counter() - began)
print(best, count * width)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--script", action="store_true")
    options = parser.parse_args()
    for part in options.part or PARTS:
        operations(script=options.script) if part == "operations" else log()


if __name__ == "__main__":
    main()
