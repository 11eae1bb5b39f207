"""ClusterSnapshot: a cluster at one moment, whatever its scheduler: nodes, queues, jobs. Memory is in MiB, times in unix seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from onward.model.job import JobId, JobState


class NodeState(StrEnum):
    FREE = "free"
    PARTLY = "partly"  # some of it is in use
    FULL = "full"
    DRAINING = "draining"  # takes no new job, and still runs some
    DRAINED = "drained"
    DOWN = "down"
    RESERVED = "reserved"  # for those whom a reservation names
    UNKNOWN = "unknown"  # a word we have no meaning for: never counted as free

    @property
    def takes_jobs(self) -> bool:
        return self in (NodeState.FREE, NodeState.PARTLY)


@dataclass(frozen=True, kw_only=True)
class Gpus:
    """Of one type; of none where the scheduler counts GPUs and no more."""

    type: str = ""
    total: int
    used: int = 0

    @property
    def free(self) -> int:
        return max(self.total - self.used, 0)


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str
    state: NodeState
    why: str = ""  # it takes no job
    cpus: int
    cpus_used: int = 0  # handed out, which says nothing of how busy they are
    mem: int = 0
    mem_used: int = 0
    gpus: tuple[Gpus, ...] = ()

    @property
    def cpus_free(self) -> int:
        return max(self.cpus - self.cpus_used, 0)

    @property
    def mem_free(self) -> int:
        return max(self.mem - self.mem_used, 0)


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A partition or queue. A limit that is None does not exist."""

    name: str
    nodes: tuple[str, ...]
    closed_on: tuple[str, ...] = ()  # of these nodes, where it starts no jobs for now
    default: bool = False
    open: bool = True  # it starts jobs
    why: str = ""  # it starts none
    time_limit: int | None = None  # seconds
    max_nodes: int | None = None  # a job
    max_cpus: int | None = None  # a node
    max_mem: int | None = None  # MiB a node
    preemptible: bool = False  # its jobs may be stopped for those of another queue


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a job asked for, in all; or got, once it runs."""

    nodes: int = 1
    cpus: int = 1
    mem: int | None = None  # None: not said
    gpus: tuple[Gpus, ...] = ()  # `total` of each type
    time: int | None = None  # seconds


@dataclass(frozen=True, kw_only=True)
class ClusterJob:
    id: JobId
    name: str
    user: str
    mine: bool
    state: JobState
    queue: str
    tasks: int = 1  # of an array, those that this line stands for
    asked: Asked
    nodes: tuple[str, ...] = ()  # where it runs
    submitted: float | None = None
    started: float | None = None
    ends: float | None = None  # at the latest
    expected_start: float | None = None  # the scheduler's own estimate, or when it is allowed to
    reason: str = ""  # why it waits, in plain words
    native: str = ""  # the scheduler's word for it
    priority: float | None = None  # of one that waits, on the scheduler's own scale: the higher goes first
    factors: str = ""  # what the priority is made of, in words
    in_line: bool = False  # waits for room and nothing else: what is free may go to it first

    @property
    def waiting(self) -> bool:
        return self.state in (JobState.QUEUED, JobState.HELD)


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    scheduler: str
    taken_at: float
    user: str  # whose jobs are `mine`
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    jobs: tuple[ClusterJob, ...]  # mine first, running ones before those that wait
    notes: tuple[str, ...] = ()  # what this picture leaves out, in words


def by_use(node: Node) -> Node:
    """A node that takes jobs, with its state by what of it is handed out. Full is one on which no CPU is left, or no memory."""
    if node.cpus_used >= node.cpus or (node.mem and node.mem_used >= node.mem):
        return replace(node, state=NodeState.FULL)
    used = node.cpus_used or node.mem_used or any(gpu.used for gpu in node.gpus)
    return replace(node, state=NodeState.PARTLY if used else NodeState.FREE)


def in_order(jobs: list[ClusterJob]) -> tuple[ClusterJob, ...]:
    """Mine first; those that run, then those that wait, by their expected start; the scheduler's own order within."""
    return tuple(sorted(jobs, key=lambda job: (not job.mine, job.waiting, job.expected_start or math.inf)))
