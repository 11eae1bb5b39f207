"""Three ways to let a training outlive its jobs, each on a real bed: Onward, the seed's own shell chain, and submitit's requeue."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.people import Person

TRAINING = Path(__file__).with_name("leg_training.py")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be trained, and under which limit."""

    steps: int
    pause: float
    save_every: float
    limit: int  # seconds a leg may run
    links: int  # of a chain, which must be told beforehand
    leave_after: float | None = None  # a life leaves by itself after so many seconds

    def words(self, trace: Path) -> list[str]:
        leave = [] if self.leave_after is None else ["--leave-after", f"{self.leave_after}"]
        return [str(trace), "--steps", f"{self.steps}", "--pause", f"{self.pause}", "--save-every", f"{self.save_every}", *leave]


class System(Protocol):
    name: str
    trace: Path

    def start(self) -> None: ...

    def over(self) -> bool: ...

    def jobs(self) -> list[str]:
        """Those that were given time."""
        ...

    def stop(self) -> None:
        """Nothing of it goes on."""
        ...


class OnwardRun:
    name = "onward"

    def __init__(self, person: Person, work: Work) -> None:
        self._person, self._work = person, work
        self.trace = person.write(f"{self.name}.trace", "")
        self._folder = Path()

    def start(self) -> None:
        minutes, seconds = divmod(self._work.limit, 60)
        command = [self._person.python, "training.py", *self._work.words(self.trace)]
        self._person.write("training.py", TRAINING.read_text())
        flags = ["--json", "--name", "bench", "--time", f"{minutes}:{seconds:02d}", "--mem", "200M"]
        body = json.loads(self._person.run(self._person.python, "-m", "onward", "submit", *flags, "--", *command))
        self._folder = Path(body["folder"])

    def over(self) -> bool:
        return (self._folder / "params" / "done.json").exists()

    def jobs(self) -> list[str]:
        lines = [line for path in (self._folder / "journal").glob("*.jsonl") for line in path.read_text().splitlines()]
        return [event["job"] for event in map(json.loads, lines) if event["kind"] == "claimed"]

    def stop(self) -> None:
        if self._folder.name and not self.over():
            self._person.run(self._person.python, "-m", "onward", "cancel", str(self._folder), check=False)


class Chain:
    """The seed's job.sh: so many links, each held on the one before it, all queued at once. By id, since by name two chains would mix."""

    name = "shell chain"

    def __init__(self, person: Person, work: Work) -> None:
        self._person, self._work = person, work
        self.trace = person.write("chain.trace", "")
        self._jobs: list[str] = []

    def start(self) -> None:
        person, work = self._person, self._work
        words = [person.python, str(person.write("link.py", TRAINING.read_text())), *work.words(self.trace)]
        script = person.write("link.sh", f"#!/bin/bash\n{shlex.join([*words, '--state', str(person.home / 'chain.json')])}\n")
        for _ in range(work.links):
            self._jobs.append(self._submit(script))

    def _submit(self, script: Path) -> str:
        last = self._jobs[-1] if self._jobs else None
        if self._person.bed == "slurm":
            held = [f"--dependency=afterany:{last}"] if last else []
            time_ = f"{self._work.limit // 60}:{self._work.limit % 60:02d}"
            flags = ["--parsable", "--no-requeue", "-t", time_, "--mem", "200M", "-J", "chain", "-o", "/dev/null", *held]
            return self._person.run("sbatch", *flags, str(script)).strip().split(";")[0]
        held = ["-hold_jid", last] if last else []
        flags = ["-terse", "-l", f"h_rt={self._work.limit}", "-S", "/bin/bash", "-N", "chain", "-o", "/dev/null", "-j", "y", *held]
        return self._person.run("qsub", *flags, str(script)).strip()

    def over(self) -> bool:
        return not queued(self._person, self._jobs)

    def jobs(self) -> list[str]:
        return self._jobs

    def stop(self) -> None:
        left = queued(self._person, self._jobs)
        if left:
            self._person.run("scancel" if self._person.bed == "slurm" else "qdel", *left, check=False)


SUBMITIT = """
import sys, submitit
sys.path.insert(0, {home!r})
import leg_training as bench
from pathlib import Path

class Training:
    def __init__(self):
        self.step = -1

    def __call__(self):
        first = bench.read_state(Path({state!r}))
        self.trace = bench.Trace(Path({trace!r}), first=first)
        bench.train(self.trace, first=first, save=self.save, asked=lambda: False, **{how!r})
        self.trace.write("end")

    def save(self, step):
        bench.write_state(Path({state!r}), step)

    def checkpoint(self):
        last = self.trace.last
        self.save(last)
        self.trace.write("save", step=last)
        self.trace.write("end")
        del self.trace
        return submitit.helpers.DelayedSubmission(self)

executor = submitit.SlurmExecutor(folder={home!r} + "/submitit", max_num_timeout=50)
executor.update_parameters(time={minutes}, mem="400M", signal_delay_s={lead}, job_name="submitit")
print(executor.submit(Training()).job_id)
"""


class Submitit:
    """submitit's own answer: at the signal before the limit, save and ask Slurm to requeue the job."""

    name = "submitit"

    def __init__(self, person: Person, work: Work, *, lead: int = 10) -> None:
        self._person, self._work, self._lead = person, work, lead
        self.trace = person.write("submitit.trace", "")
        self._job = ""

    def start(self) -> None:
        person, work = self._person, self._work
        person.write("leg_training.py", TRAINING.read_text())
        how: dict[str, Any] = {"steps": work.steps, "pause": work.pause, "save_every": work.save_every, "leave_after": work.leave_after}
        text = SUBMITIT.format(
            home=str(person.home),
            state=str(person.home / "submitit.json"),
            trace=str(self.trace),
            how=how,
            minutes=max(1, work.limit // 60),
            lead=self._lead,
        )
        self._job = person.run(person.python, str(person.write("submits.py", text))).strip().splitlines()[-1]

    def over(self) -> bool:
        return not queued(self._person, [self._job])

    def jobs(self) -> list[str]:
        return [self._job]

    def stop(self) -> None:
        if self._job:
            self._person.run("scancel", *queued(self._person, [self._job]), check=False)


# ── asking the scheduler ──────────────────────────────────────────────────────


def queued(person: Person, jobs: list[str]) -> list[str]:
    """Those of these jobs that wait, run, or are just leaving."""
    if person.bed == "slurm":
        rows = person.run("squeue", "-h", "-u", "alice", "-o", "%i").split()
        return [job for job in jobs if job in rows]
    known = set(re.findall(r"^\s*(\d+) ", person.run("qstat", "-u", "alice"), re.MULTILINE))
    return [job for job in jobs if job in known]


def allocated(person: Person, jobs: list[str]) -> float:
    """Seconds for which these jobs held their places, every life of a requeued job counted."""
    if not jobs:
        return 0.0
    if person.bed == "slurm":
        rows = person.run("sacct", "-D", "-X", "-n", "-P", "-j", ",".join(jobs), "-o", "ElapsedRaw").split()
        return float(sum(int(row) for row in rows if row.isdigit()))
    return sum(_wallclock(person, job) for job in jobs)


def _wallclock(person: Person, job: str) -> float:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        output = person.run("qacct", "-j", job, check=False)
        times = [_seconds(found[1].strip()) for found in re.finditer(r"^(?:start|end)_time\s+(.*)$", output, re.MULTILINE)]
        if len(times) >= 2:
            return sum(end - start for start, end in zip(times[::2], times[1::2], strict=False))
        time.sleep(1)
    return 0.0


def _seconds(text: str) -> float:
    for form in ("%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S.%f"):
        try:
            return time.mktime(time.strptime(text, form))
        except ValueError:
            continue
    return 0.0
