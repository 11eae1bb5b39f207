"""What looking after runs costs the scheduler: calls per minute with 1, 100 and 1,000 runs waiting in a real queue.

Every run has a job of its own in the bed's queue, put on hold. `onward tend` looks after them as often as a shared cluster is
looked at, every 30 s; programs of the scheduler are counted by stand-ins that note the call and start the real one.
Beside it, what a script that asks after each job by itself would call.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.people import BEDS, Person, alice_on, is_up

PROGRAMS = {
    "slurm": ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo"),
    "gridengine": ("qsub", "qstat", "qacct", "qconf", "qdel", "qalter", "qhost"),
}
PASSES = 2  # a minute: one every 30 s


def put_on_hold(person: Person, count: int) -> list[str]:
    """Jobs that wait in the queue until they are ended. One call of a shell queues them all."""
    script = person.write("wait.sh", "#!/bin/bash\nsleep 1\n")
    ask = "sbatch --parsable -H -t 1 --mem 1M -o /dev/null" if person.bed == "slurm" else "qsub -terse -h -S /bin/bash -o /dev/null -j y"
    line = f'for i in $(seq {count}); do {ask} {"-J" if person.bed == "slurm" else "-N"} bench$i.1.t "{script}" || exit; done'
    return [word.split(";")[0] for word in person.run("bash", "-c", line, timeout=600).split()]


def make_runs(person: Person, jobs: list[str]) -> Path:
    """A run for each job: submitted, its first leg queued."""
    root = person.home / f"runs-{len(jobs)}"
    now = time.time()
    for number, job in enumerate(jobs, 1):
        folder = root / f"2026-11-15_{letters(number)}_bench{number}"
        for part in ("params/claims", "journal", "spool", "logs", "results/checkpoints"):
            (folder / part).mkdir(parents=True)
        spec: dict[str, object] = {
            "schema": 1,
            "id": f"b{number:07d}",
            "name": f"bench{number}",
            "experiment": "bench",
            "command": ["true"],
        }
        spec |= {"workdir": "/", "created": now, "user": "alice", "cluster": {"name": person.bed, "scheduler": person.bed}}
        spec |= {"resources": {"time": 60}, "limits": {}, "checkpoints": {}}
        (folder / "params" / "spec.json").write_text(json.dumps(spec))
        name = f"bench{number}.1.t"
        events = [
            {"kind": "submitting", "leg": 1, "at": now, "name": name, "mem": None, "time": 60, "exclude": None},
            {"kind": "submitted", "leg": 1, "at": now, "name": name, "job": job},
        ]
        (folder / "journal" / "desk-1.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    uid = pwd.getpwnam("alice").pw_uid
    for place, _, files in os.walk(root):
        for path in (place, *(os.path.join(place, file) for file in files)):
            os.chown(path, uid, -1)
    return root


def letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(65 + rest) + text
    return text


def count_calls(person: Person) -> Path:
    """Stand-ins for the scheduler's programs, first on the PATH. Their calls are in the file that is returned."""
    folder = person.home / "counting"
    folder.mkdir()
    calls = person.write("calls", "")
    for program in PROGRAMS[person.bed]:
        real = person.run("bash", "-c", f"command -v {program} || true").strip()
        if real:
            (folder / program).write_text(f'#!/bin/sh\necho "{program} $*" >>"{calls}"\nexec {real} "$@"\n')
            (folder / program).chmod(0o755)
    person.environment.update({"PATH": f"{folder}:{person.environment['PATH']}", "SGE_BINARY_PATH": str(folder)})
    return calls


def measure(bed: str, counts: list[int]) -> None:
    with alice_on(bed) as person:
        jobs: list[str] = []
        calls: Path | None = None
        try:
            for count in counts:
                jobs += put_on_hold(person, count - len(jobs))
                root = make_runs(person, jobs)
                person.environment["ONWARD_ROOT"] = str(root)
                calls = calls or count_calls(person)
                calls.write_text("")
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                for _ in range(PASSES):
                    said = json.loads(person.run(person.python, "-m", "onward", "tend", "--json", timeout=300))
                    if said.get("acted") or said.get("problems"):
                        raise SystemExit(f"tend was to find nothing to do, and says {said}")
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / PASSES
                seen = calls.read_text().splitlines()
                kinds = ", ".join(sorted({line.split()[0] for line in seen}))
                print(
                    f"{bed:12} {count:5} runs: {len(seen):3} calls a minute ({kinds}); one a job would be {PASSES * count}; "
                    f"a pass costs {cpu:.2f} s CPU",
                    flush=True,
                )
        finally:
            end = "scancel" if bed == "slurm" else "qdel"
            for start in range(0, len(jobs), 200):
                person.run(end, *jobs[start : start + 200], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Scheduler calls per minute with many runs.")
    parser.add_argument("--bed", choices=BEDS, action="append", help="only this one; may be repeated")
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 100, 1000])
    options = parser.parse_args()
    for bed in options.bed or BEDS:
        if is_up(bed):
            measure(bed, sorted(options.runs))
        else:
            print(f"{bed}: the bed is not up (python3 -m beds up)")


if __name__ == "__main__":
    main()
