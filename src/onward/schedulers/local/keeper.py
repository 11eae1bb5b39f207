"""Keeper: the one process that starts a queue's jobs, holds them to their limits and writes down how they ended.

    python -m onward.schedulers.local.keeper STATE

It is started by whoever needs it (local_launch) and leaves when nothing is left to do. Killing it harms no job: jobs are not
tied to it, and the next keeper goes on from the records.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from onward.clock import Clock, SystemClock
from onward.model.job import JobId, JobState
from onward.schedulers.local import job_wrapper
from onward.schedulers.local.job_queue import LIVE, JobRecord, LocalJob, LocalQueue
from onward.schedulers.local.keeper_job import KeeperJob
from onward.schedulers.local.keeper_launch import LOCK_VARIABLE, take_lock
from onward.schedulers.local.machine import MachineCapacity, cpus_here, mem_here
from onward.schedulers.local.processes import JobProcess, describe_self, job_processes, memory_held

log = logging.getLogger("onward.local_keeper")

GRACE_SECONDS = 5.0  # between asking a job to end and killing it
STUCK_SECONDS = 10.0  # then a process that cannot be killed no longer holds up the queue
IDLE_SECONDS = 2.0
MEMORY_SECONDS = 1.0  # between looks at the memory of jobs
AWAKE_SECONDS = 10.0  # after a change, more is likely to come
FAST, SLOW = 0.1, 0.5  # seconds between looks


class Keeper:
    def __init__(self, queue: LocalQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._jobs: dict[JobId, KeeperJob] = {}
        self._machine = _machine_of(queue)
        self._changed = clock.now()
        self._memory_seen = 0.0
        for job, record in queue.taken():
            self._hold(job, record)

    def run(self, is_ours: Callable[[], bool]) -> None:
        """Until nothing has been left to do for a while, or the queue is not ours any more."""
        trouble = ""
        while is_ours() and (self._jobs or self._clock.now() - self._changed < IDLE_SECONDS):
            try:
                self.look()
            except OSError as error:
                if trouble != str(error):
                    log.warning("the queue's folder cannot be used; jobs and keeper continue: %s", error)
                trouble = str(error)
            busy = self._clock.now() - self._changed < AWAKE_SECONDS or any(held.record.ending for held in self._jobs.values())
            self._clock.sleep(FAST if busy else SLOW)

    def look(self) -> None:
        """One round: what came in, who is to go, who has ended or must, who can start."""
        cancels = self._queue.cancels()  # before taking: then the job of each is taken too, unless it is over
        for job in self._queue.take():
            self._hold(job, JobRecord())
            self._machine = _machine_of(self._queue)
        for id_ in cancels:
            self._cancel(id_)
        for held in list(self._jobs.values()):
            if held.running:
                self._follow(held)
            elif not held.waiting:
                self._put_away(held)  # an earlier attempt did not come this far
        self._look_at_processes()
        self._start_what_fits()

    # ── following running jobs ────────────────────────────────────────────────

    def _follow(self, held: KeeperJob) -> None:
        now, deadline = self._clock.now(), held.record.deadline
        if held.record.ending:
            return
        if not held.was_started:
            self._start(held)
        elif held.is_over:
            self._end(held, held.own_end, reason="", kill_at=now)
        elif deadline is not None and now >= deadline:
            self._end(held, JobState.TIMED_OUT, reason=f"ran for its {held.job.request.time} s", kill_at=now + GRACE_SECONDS)

    def _look_at_processes(self) -> None:
        """One scan of /proc for all jobs that need it: those that end, and now and then those with a memory limit."""
        now = self._clock.now()
        due = now - self._memory_seen >= MEMORY_SECONDS
        looked_at = [
            held for held in self._jobs.values() if held.running and (held.record.ending or (due and held.job.request.mem is not None))
        ]
        if due:
            self._memory_seen = now
        if not looked_at:
            return
        found = job_processes(self._queue.state, {held.job.id: held.process for held in looked_at})
        for held in looked_at:
            processes = found[held.job.id]
            if held.record.ending is None:
                self._check_memory(held, processes)
            if held.record.ending is not None:
                self._bring_to_an_end(held, processes)

    def _check_memory(self, held: KeeperJob, processes: list[JobProcess]) -> None:
        limit = self._machine.memory_for(held.job.request)
        used = memory_held(processes, limit=limit)
        if used > limit:
            self._end(
                held, JobState.OUT_OF_MEMORY, reason=f"used {used} MiB of memory, its limit is {limit} MiB", kill_at=self._clock.now()
            )

    def _cancel(self, id_: JobId) -> None:
        held = self._jobs.get(id_)
        if held is None:
            self._queue.forget_cancel(id_)
        elif held.waiting:
            self._close(held, replace(held.record, state=JobState.CANCELLED, reason="cancelled before it started"))
        elif held.running and held.record.ending is None:
            self._end(held, JobState.CANCELLED, reason="cancelled while it ran", kill_at=self._clock.now() + GRACE_SECONDS)

    # ── ending ────────────────────────────────────────────────────────────────

    def _end(self, held: KeeperJob, state: JobState, *, reason: str, kill_at: float) -> None:
        """From now on this job ends so, whatever its script still says, and whichever keeper sees it through."""
        self._save(held, replace(held.record, ending=state, reason=reason, kill_at=kill_at))

    def _bring_to_an_end(self, held: KeeperJob, processes: list[JobProcess]) -> None:
        """Ask all of the job's processes once, kill them when their time is over, close the job when none is left."""
        now, kill_at = self._clock.now(), held.record.kill_at or 0.0
        if not processes and held.is_over:
            self._close(held, held.last_record(left=0))
        elif now >= kill_at + STUCK_SECONDS:
            self._close(held, held.last_record(left=len(processes)))
        elif now >= kill_at:
            held.send(processes, signal.SIGKILL)
        elif not held.asked:
            held.send(processes, signal.SIGTERM)

    def _close(self, held: KeeperJob, record: JobRecord) -> None:
        self._save(held, replace(record, ended=self._clock.now()))
        self._put_away(held)

    def _put_away(self, held: KeeperJob) -> None:
        self._queue.close(held.job)
        del self._jobs[held.job.id]
        self._queue.forget_cancel(held.job.id)
        self._queue.prune(self._clock.now())

    # ── starting ──────────────────────────────────────────────────────────────

    def _start_what_fits(self) -> None:
        """In the order of submission; a later job may pass one that does not fit yet."""
        left = self._left()
        for held in sorted(self._jobs.values(), key=lambda held: int(held.job.id)):
            if not held.waiting:
                continue
            if held.job.after in self._jobs:
                self._save(held, replace(held.record, state=JobState.HELD, reason=f"waits for job {held.job.after}"))
            elif shortage := self._machine.shortage(held.job.request, left):
                self._save(held, replace(held.record, state=JobState.QUEUED, reason=shortage))
            else:
                now, limit = self._clock.now(), held.job.request.time
                deadline = now + limit if limit is not None else None
                gpus = left.gpus[: self._machine.gpus_for(held.job.request)]
                self._save(held, JobRecord(state=JobState.RUNNING, started=now, deadline=deadline, gpus=gpus))
                self._start(held)
                left = self._left()

    def _start(self, held: KeeperJob) -> None:
        try:
            held.child = job_wrapper.start(
                held.job, held.record, held.folder, state=self._queue.state, host=socket.gethostname(), machine_gpus=self._machine.gpus
            )
        except OSError as error:
            self._close(held, replace(held.record, state=JobState.FAILED, reason=f"could not be started: {error}"))

    def _left(self) -> MachineCapacity:
        return self._machine.without((held.job.request, held.record.gpus) for held in self._jobs.values() if held.running)

    # ── small matters ─────────────────────────────────────────────────────────

    def _hold(self, job: LocalJob, record: JobRecord) -> None:
        self._jobs[job.id] = KeeperJob(job, record, self._queue.folder(LIVE, job))
        self._changed = self._clock.now()

    def _save(self, held: KeeperJob, record: JobRecord) -> None:
        if record != held.record:
            self._queue.save(held.job, record)
            held.record = record
            self._changed = self._clock.now()


def main(argv: Sequence[str]) -> int:
    """Take the lock, or inherit it from the process that starts us; detach from it; keep the queue until it is empty."""
    queue = LocalQueue(Path(argv[0]).resolve())
    queue.make()
    inherited = _inherited_lock(queue.keeper_lock)
    lock = inherited if inherited is not None else take_lock(queue.keeper_lock)
    if lock is None:
        return 0  # another keeper runs
    if os.fork():
        return 0  # our starter waits for this process alone; the keeper is nobody's child and leads no session
    _forget_starter()
    while lock is not None:
        os.ftruncate(lock, 0)
        os.pwrite(lock, describe_self().encode(), 0)
        Keeper(queue, SystemClock()).run(partial(_is_at, lock, queue.keeper_lock))
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
        # A job that came in while we still held the lock started no keeper: it is ours, unless another keeper has taken it.
        lock = take_lock(queue.keeper_lock) if queue.unfinished() else None
    return 0


def _inherited_lock(path: Path) -> int | None:
    number = os.environ.pop(LOCK_VARIABLE, "")
    if not number.isdecimal() or not _is_at(int(number), path):
        return None
    os.set_inheritable(int(number), False)  # a job that held it would keep the next keeper out
    return int(number)


def _is_at(lock: int, path: Path) -> bool:
    """Whether the lock is the queue's: not where somebody has deleted the queue, and perhaps made a new one in its place."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except OSError:
        return False


def _forget_starter() -> None:
    """Nothing that our starter ignored or blocked may reach the jobs."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "CHLD"):
        signal.signal(signal.Signals[f"SIG{name}"], signal.SIG_DFL)
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


def _machine_of(queue: LocalQueue) -> MachineCapacity:
    noted = queue.machine()
    return MachineCapacity(cpus=noted.get("cpus", cpus_here()), mem=noted.get("mem", mem_here()), gpus=tuple(noted.get("gpus", ())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
