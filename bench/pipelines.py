"""A sweep of many short tasks on the Slurm bed: Onward's workers, a job for each task, and submitit's map_array, over the same slots.

    python bench/pipelines.py [--tasks 200] [--seconds 2] [--slots 8]

What counts: the time from the start to the last task's end, as a ratio to the work divided by the slots, and how many jobs the
scheduler had to know for it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.people import Person, alice_on, is_up

FILE = """
name: sweep
cluster: slurm
models: {base: model}
benchmark:
  - name: nap
    command: sleep SECONDS
    shards: TASKS
    adapter: exit-code
    resources: {time: "10:00", mem: 200M, cpus-per-task: EACH}
    cpus: 1
workers: {max-running: WORKERS}
"""

SUBMITIT = """
import sys, time, submitit
tasks, seconds, slots = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
executor = submitit.AutoExecutor(folder="submitit-logs", cluster="slurm")
executor.update_parameters(timeout_min=10, mem_gb=0.2, cpus_per_task=1, slurm_array_parallelism=slots)
jobs = executor.map_array(time.sleep, [seconds] * tasks)
for job in jobs:
    job.wait()
print(len(jobs))
"""


@dataclass(frozen=True, kw_only=True)
class Took:
    seconds: float
    jobs: int


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--slots", type=int, default=8)
    options = parser.parse_args()
    if not is_up("slurm"):
        raise SystemExit("the Slurm bed is not up: make beds")
    ideal = options.tasks * options.seconds / options.slots
    print(f"{options.tasks} tasks of {options.seconds:g} s on {options.slots} slots: {ideal:.0f} s of work in each")
    print("| way | time | × work ÷ slots | scheduler jobs |\n|---|---|---|---|")
    for name, way in (("Onward's workers", onward), ("a job for each task", one_job_each), ("submitit map_array", submitit)):
        with alice_on("slurm") as person:
            took = way(person, options.tasks, options.seconds, options.slots)
        print(f"| {name} | {took.seconds:.1f} s | {took.seconds / ideal:.2f} × | {took.jobs} |", flush=True)


def onward(person: Person, tasks: int, seconds: float, slots: int) -> Took:
    each = 2 if slots % 2 == 0 else 1
    text = FILE.replace("SECONDS", f"{seconds:g}").replace("TASKS", str(tasks)).replace("EACH", str(each))
    person.write("pipeline.yaml", text.replace("WORKERS", str(slots // each)))
    person.run("mkdir", "model")
    began = time.monotonic()
    body = json.loads(person.run(person.python, "-m", "onward", "pipeline", "run", "pipeline.yaml", "--json"))
    over = Path(body["folder"], "params", "over.json")
    while not over.exists():
        time.sleep(0.1)
    took = time.monotonic() - began
    ended = json.loads(over.read_text())
    if ended["state"] != "finished":
        raise SystemExit(f"the pipeline ended {ended}")
    return Took(seconds=took, jobs=jobs_of(Path(body["folder"])))


def one_job_each(person: Person, tasks: int, seconds: float, slots: int) -> Took:
    """As many at a time as there are slots: held on the job that many before."""
    script = person.write("nap.sh", f"#!/bin/bash\nsleep {seconds:g}\n")
    jobs: list[str] = []
    began = time.monotonic()
    for number in range(tasks):
        held = [f"--dependency=afterany:{jobs[number - slots]}"] if number >= slots else []
        flags = ["--parsable", "-t", "10", "--mem", "200M", "-c", "1", "-J", "nap", "-o", "/dev/null", *held]
        jobs.append(person.run("sbatch", *flags, str(script)).strip().split(";")[0])
    until_gone(person, "nap")
    return Took(seconds=time.monotonic() - began, jobs=len(jobs))


def submitit(person: Person, tasks: int, seconds: float, slots: int) -> Took:
    began = time.monotonic()
    script = person.write("map.py", SUBMITIT)
    done = person.run(person.python, str(script), str(tasks), f"{seconds:g}", str(slots), timeout=1200)
    return Took(seconds=time.monotonic() - began, jobs=int(done.split()[-1]))


def until_gone(person: Person, name: str) -> None:
    while person.run("squeue", "-h", "-u", "alice", "-n", name, "-o", "%i").strip():
        time.sleep(0.5)


def jobs_of(folder: Path) -> int:
    """All that were asked for, also those that were held and never ran."""
    lines = (line for path in folder.parent.glob(f"{folder.name}-*/journal/*.jsonl") for line in path.read_text().splitlines())
    return sum(json.loads(line)["kind"] == "submitted" for line in lines)


if __name__ == "__main__":
    main()
