"""Held: a job in the keeper's hands, from the moment it is taken until nothing of it is left."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from onward.model.job import JobState
from onward.schedulers.local import job_wrapper
from onward.schedulers.local.job_queue import JobRecord, LocalJob
from onward.schedulers.local.processes import JobProcess


@dataclass
class KeeperJob:
    """All but `job` and `record` is forgotten with the keeper, and found again by the next one."""

    job: LocalJob
    record: JobRecord
    folder: Path
    process: JobProcess | None = None  # its wrapper, once that has claimed the job
    child: subprocess.Popen[bytes] | None = None  # a wrapper that this keeper started: the same, but for rare races
    asked: bool = False  # a signal to end has found somebody

    @property
    def waiting(self) -> bool:
        return self.record.state in (JobState.QUEUED, JobState.HELD)

    @property
    def running(self) -> bool:
        return self.record.state is JobState.RUNNING

    @property
    def was_started(self) -> bool:
        """By this keeper or an earlier one. A keeper that died in the act may have left a running job that nobody started."""
        return self._claimed_by() is not None or self.child is not None

    @property
    def is_over(self) -> bool:
        """Its script has ended; other processes of the job may be left."""
        child_gone = self.child is None or self.child.poll() is not None  # before looking for its traces
        process = self._claimed_by()
        if job_wrapper.exit_code(self.folder) is not None:
            return True
        return child_gone if process is None else not process.alive

    @property
    def code(self) -> int | None:
        """The wrapper's word; or, where the disk was too full for it, what it ended with, if it was our child."""
        code = job_wrapper.exit_code(self.folder)
        if code is None and self.child is not None and self.process is not None and self.child.pid == self.process.pid:
            return self.child.poll()
        return code

    @property
    def own_end(self) -> JobState:
        """How a job ended that nobody ended."""
        if self.code is None and self.process is not None and self.process.before_this_boot:
            return JobState.NODE_FAILED
        return JobState.FINISHED if self.code == 0 else JobState.FAILED

    def send(self, processes: list[JobProcess], number: signal.Signals) -> None:
        for process in processes:
            process.send(number)
        self.asked = self.asked or bool(processes)

    def last_record(self, *, left: int) -> JobRecord:
        """With everything that is known at the end. `left` processes could not be killed."""
        assert self.record.ending is not None
        code, reason = self.code, self.record.reason
        match self.record.ending:
            case JobState.NODE_FAILED:
                reason = "the machine restarted while the job ran"
            case JobState.FAILED if self.process is None:
                reason = "could not be started"
            case JobState.FAILED if code is None:
                reason = "ended while no keeper was running"
            case JobState.FAILED:
                reason = job_wrapper.failure_reason(self.folder, self.job)
            case _:
                pass
        if left:
            reason = f"{reason}; {left} of its processes could not be killed".removeprefix("; ")
        exit_code, number = job_wrapper.exit_code_and_signal(code)
        return replace(self.record, state=self.record.ending, ending=None, kill_at=None, reason=reason, exit_code=exit_code, signal=number)

    def _claimed_by(self) -> JobProcess | None:
        self.process = self.process or job_wrapper.claimed_by(self.folder)
        return self.process
