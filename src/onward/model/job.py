"""Job: what the scheduler knows of one leg."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

JobId = NewType("JobId", str)

NAME_PATTERN = re.compile(r"^[A-Za-z][A-Za-z0-9._-]{0,199}$")

_LABELS = re.compile(r"(?P<name>.+)\.(?P<leg>[0-9]{1,9})\.(?P<run>[^.]+)-[0-9a-f]+")

DONE_UNTOLD = 76  # exit code of a job whose training finished and is stored, where its run's folder takes no word of it


class JobState(StrEnum):
    QUEUED = "queued"
    HELD = "held"  # waits for another job, or was put on hold
    RUNNING = "running"
    FINISHED = "finished"  # its script exited 0
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAILED = "node_failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # a word we have no meaning for: never taken for an end

    @property
    def live(self) -> bool:
        """The job is, or may be, still to run or running."""
        return self in (JobState.QUEUED, JobState.HELD, JobState.RUNNING, JobState.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """One answer of the scheduler about one job."""

    id: JobId
    name: str
    state: JobState
    reason: str = ""  # the scheduler's own words
    paused: bool = False  # it has its nodes, and its processes stand still: suspended by an administrator, or for another job
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[str, ...] = ()
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    cancelled_by: str = ""  # the user who cancelled it, where that was not the job's owner; empty: the owner, or not known


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What a job got once it started: told from inside the job."""

    job: JobId
    hosts: tuple[str, ...]
    deadline: float | None  # unix seconds; None: no limit
    gpus: tuple[str, ...] = ()  # the job's own, as the scheduler names them (indexes or UUIDs)
    started: float | None = None  # when its time began to count, where the scheduler leaves a trace of it
    restarted: bool = False  # the scheduler has started this very job before


def job_name(run_name: str, leg: int, *, run: str, token: str) -> str:
    """`<run-name>.<leg>.<run>-<token>`: enough to find the job again, whatever happened to the answer, and whoever queued it.

    `run`: its id, since many runs may have one name. `token`: of this one submission.
    """
    return f"{run_name}.{leg}.{run}-{token}"


@dataclass(frozen=True, kw_only=True)
class JobLabels:
    """What a job's name tells."""

    run_name: str
    leg: int
    run: str

    @classmethod
    def read(cls, name: str) -> JobLabels | None:
        """None: a name of an earlier version, or of somebody else."""
        told = _LABELS.fullmatch(name)
        return cls(run_name=told["name"], leg=int(told["leg"]), run=told["run"]) if told else None
