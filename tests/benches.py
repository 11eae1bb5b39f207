"""Benches: a scheduler each, a folder, and the means to write scripts for it and to wait for what becomes of them."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from onward.clock import ManualClock
from onward.model.job import JobId, JobState, JobStatus
from onward.model.spec import Resources
from onward.schedulers.base import Scheduler
from onward.schedulers.local.job_queue import LocalQueue
from onward.schedulers.local.keeper_launch import take_lock
from onward.schedulers.local.processes import JobProcess, job_processes
from onward.schedulers.local.scheduler import LocalScheduler
from tests.fakes import FakeScheduler

ANYTHING = Resources()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a script does, in this order."""

    prints: str = ""
    sleeps: int = 0
    exits: int = 0

    def text(self) -> str:
        return f"echo {shlex.quote(self.prints)}\nsleep {self.sleeps}\nexit {self.exits}\n"


class Bench(Protocol):
    shortest_limit: int  # seconds: below it the scheduler counts no time

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def folder(self) -> Path:
        """Jobs may write here."""
        ...

    def script(self, plan: Plan, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path: ...

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        """The first answer in which the job has one of these states."""
        ...

    def reach_limit(self, job: JobId) -> None:
        """Let the job's time limit come, where that can be hastened."""
        ...

    def close(self) -> None:
        """Nothing that was started here goes on."""
        ...


def until(condition: Callable[[], bool], *, seconds: float = 60.0, what: str = "the condition") -> None:
    """Wait for a condition. The time is for a machine that is very busy: no test is meant to take it."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about within {seconds:.0f} s"
        time.sleep(0.02)


def write_script(bench: Bench, body: str, *, resources: Resources, output: Path | None) -> Path:
    folder = bench.folder / "scripts"
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.sh"
    lines = bench.scheduler.directives(resources, output=output or bench.folder / f"{path.stem}.out")
    path.write_text("\n".join(["#!/bin/bash", *lines, body]))
    return path


class FakeBench:
    """Plays the scripts' plans out on the fake, a second of the hand clock at a time."""

    shortest_limit = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.scheduler = FakeScheduler(self.clock)
        self._plans: dict[Path, Plan] = {}

    def script(self, plan: Plan, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path:
        path = write_script(self, plan.text(), resources=resources, output=output)
        self._plans[path] = plan
        return path

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        for _ in range(1000):
            status = self.scheduler.status([job])[job]
            if status.state in states:
                return status
            self._play()
        raise AssertionError(f"job {job} never was {states}")

    def reach_limit(self, job: JobId) -> None: ...

    def close(self) -> None: ...

    def _play(self) -> None:
        for job, status in self.scheduler.status(list(self.scheduler.jobs)).items():
            script = self.scheduler.jobs[job].script
            plan = self._plans[script]
            asked = dict(
                line.removeprefix("#FAKE --").split("=", 1) for line in script.read_text().splitlines() if line.startswith("#FAKE")
            )
            if status.state is JobState.QUEUED:
                self.scheduler.start(job)
                Path(asked["output"]).write_text(f"{plan.prints}\n")
            elif status.state is JobState.RUNNING and status.started is not None:
                ran = self.clock.now() - status.started
                if ran >= plan.sleeps:
                    self.scheduler.end(job, JobState.FAILED if plan.exits else JobState.FINISHED, exit_code=plan.exits)
                elif "time" in asked and ran >= int(asked["time"]):
                    self.scheduler.end(job, JobState.TIMED_OUT, exit_code=None)
        self.clock.sleep(1)


class LocalBench:
    """A queue of its own, with a keeper of its own when one is needed."""

    shortest_limit = 1

    def __init__(self, folder: Path, *, cpus: int = 16, mem: int | None = None, gpus: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.state = (folder / "state").resolve()
        self.scheduler = LocalScheduler(self.state, cpus=cpus, mem=mem, gpus=gpus)
        self.queue = LocalQueue(self.state)

    def script(self, plan: Plan, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path:
        return self.shell(plan.text(), resources=resources, output=output)

    def shell(self, body: str, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path:
        return write_script(self, body, resources=resources, output=output)

    def submit(self, body: str, *, name: str = "job", after: JobId | None = None, resources: Resources = ANYTHING) -> JobId:
        return self.scheduler.submit(self.shell(body, resources=resources), name=name, after=after)

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        return wait_for(self.scheduler, job, states, seconds=60)

    def wait_for_end(self, job: JobId) -> JobStatus:
        return self.wait_for(job, *(state for state in JobState if not state.live))

    def reach_limit(self, job: JobId) -> None: ...

    def keeper(self) -> JobProcess | None:
        """The keeper that runs now and has said so."""
        lock = self.state / "keeper.lock"
        process = JobProcess.parse(lock.read_text()) if lock.exists() else None
        return process if process and process.alive else None

    def kill_keeper(self) -> JobProcess:
        until(lambda: self.keeper() is not None, what="a keeper")
        keeper = self.keeper()
        assert keeper is not None
        keeper.send(signal.SIGKILL)
        until(lambda: not keeper.alive, what="the keeper's death")
        return keeper

    def processes(self, *jobs: JobId) -> list[JobProcess]:
        found = job_processes(self.state, dict.fromkeys(jobs or self.queue.listing("incoming", "live", "ended")))
        return [process for processes in found.values() for process in processes]

    def close(self) -> None:
        if not self.state.exists():
            return
        until(self._keeper_is_gone, what="the keeper's death")
        until(self._jobs_are_gone, what="the end of all jobs")

    def _keeper_is_gone(self) -> bool:
        if keeper := self.keeper():
            keeper.send(signal.SIGKILL)
        lock = take_lock(self.state / "keeper.lock")
        if lock is None:
            return False
        os.close(lock)
        return True

    def _jobs_are_gone(self) -> bool:
        left = self.processes()
        for process in left:
            process.send(signal.SIGKILL)
        return not left


class SlurmBench:
    """The Slurm bed, which is up already."""

    shortest_limit = 60

    def __init__(self, folder: Path, scheduler: Scheduler) -> None:
        self.folder = folder
        self.scheduler = scheduler

    def script(self, plan: Plan, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path:
        return write_script(self, plan.text(), resources=resources, output=output)

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        return wait_for(self.scheduler, job, states, seconds=180)

    def reach_limit(self, job: JobId) -> None:
        self.wait_for(job, JobState.RUNNING)
        subprocess.run(["scontrol", "update", f"JobId={job}", "EndTime=now+1"], check=True, timeout=60)

    def close(self) -> None:
        """Jobs of this bench start in its folder, and are known by it."""
        rows = subprocess.run(["squeue", "-h", "-o", "%i %Z"], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
        ours = [row.split(" ", 1)[0] for row in rows if Path(row.split(" ", 1)[1]) == self.folder]
        if ours:
            subprocess.run(["scancel", *ours], check=True, timeout=60)


class GridEngineBench:
    """The Grid Engine bed, which is up already. The adapter talks to it as an ordinary user, through programs that become her."""

    shortest_limit = 2
    user = "alice"

    def __init__(self, folder: Path, scheduler: Scheduler) -> None:
        self.folder = folder
        self.scheduler = scheduler

    @staticmethod
    def programs(folder: Path, binaries: Path) -> Path:
        """Grid Engine's programs, run by its user rather than by root, to whom it gives no jobs."""
        place = folder / "bin"
        place.mkdir()
        for name in ("qsub", "qstat", "qdel", "qacct", "qconf"):
            (place / name).write_text(f'#!/bin/sh\nexec runuser -u {GridEngineBench.user} -- {binaries}/{name} "$@"\n')
            (place / name).chmod(0o755)
        return place

    def script(self, plan: Plan, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path:
        return write_script(self, plan.text(), resources=resources, output=output)

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        return wait_for(self.scheduler, job, states, seconds=180)

    def reach_limit(self, job: JobId) -> None: ...

    def close(self) -> None:
        """Jobs of this bench write into its folder, and are known by it."""
        binaries = os.environ["SGE_BINARY_PATH"]
        asked = subprocess.run([f"{binaries}/qstat", "-u", self.user], capture_output=True, text=True, check=True, timeout=60)
        jobs = [line.split()[0] for line in asked.stdout.splitlines()[2:]]
        output = subprocess.run([f"{binaries}/qstat", "-j", ",".join(jobs) or "0"], capture_output=True, text=True, timeout=60).stdout
        ours = [block.split()[0] for block in output.split("job_number:")[1:] if f"{self.folder}/" in block]
        if ours:
            subprocess.run([f"{binaries}/qdel", *ours], check=False, capture_output=True, timeout=60)


def wait_for(scheduler: Scheduler, job: JobId, states: tuple[JobState, ...], *, seconds: float) -> JobStatus:
    end = time.monotonic() + seconds
    while True:
        status = scheduler.status([job]).get(job)
        if status is not None and status.state in states:
            return status
        over = status is not None and not status.state.live
        assert not over and time.monotonic() < end, f"job {job} did not become {' or '.join(states)}: {status}"
        time.sleep(0.05)


def end_local_queue(folder: Path) -> None:
    """End the keeper and the jobs of the queue below a state folder: a command of the test may have queued one, to repair a run."""
    bench = LocalBench(folder)
    bench.state = (folder / f"local-{socket.gethostname()}").resolve()
    bench.queue = LocalQueue(bench.state)
    bench.close()
