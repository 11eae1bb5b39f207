"""A cluster as the API gives it: what `onward cluster --json` prints. Memory is in MiB, times in unix seconds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

JobWord = Literal[
    "queued",
    "held",
    "running",
    "finished",
    "failed",
    "timed_out",
    "preempted",
    "out_of_memory",
    "node_failed",
    "cancelled",
    "unknown",
]


class ClusterOut(BaseModel):
    name: str
    scheduler: str
    host: str | None = Field(description="The ssh host through which it is asked; null: from this machine.")
    auto: bool = Field(description="It is what `auto` stands for here.")


class ClusterList(BaseModel):
    clusters: list[ClusterOut]


class GpusOut(BaseModel):
    """GPUs of one type."""

    type: str = Field(description="Empty if the scheduler does not distinguish types.")
    total: int
    used: int = Field(description="Allocated.")


class ClusterNodeOut(BaseModel):
    name: str
    state: Literal["free", "partly", "full", "draining", "drained", "down", "reserved", "unknown"]
    why: str = Field(description="It accepts no jobs.")
    cpus: int
    cpus_used: int = Field(description="Allocated; not how busy they are.")
    mem: int
    mem_used: int
    gpus: list[GpusOut]


class QueueOut(BaseModel):
    """A partition or queue. A null limit does not exist."""

    name: str
    nodes: list[str]
    closed_on: list[str] = Field(description="How many of these nodes start no jobs for now.")
    default: bool
    open: bool = Field(description="It starts jobs.")
    why: str = Field(description="It starts none.")
    time_limit: int | None = Field(description="Seconds.")
    max_nodes: int | None = Field(description="A job.")
    max_cpus: int | None = Field(description="A node.")
    max_mem: int | None = Field(description="A node.")
    preemptible: bool = Field(description="Its jobs may be stopped for those of another queue.")
    running: int
    waiting: int


class RequestedResourcesOut(BaseModel):
    """What a job asked for in total, or got once it runs."""

    nodes: int
    cpus: int
    mem: int | None
    gpus: list[GpusOut]
    time: int | None = Field(description="Seconds.")


class ClusterJobOut(BaseModel):
    id: str
    name: str
    user: str
    mine: bool = Field(description="Belongs to the user who asks the scheduler: the server's, or the ssh login's.")
    state: JobWord
    queue: str = Field(description="Comma-separated if it may go to several; empty if it names none.")
    tasks: int = Field(description="For an array, how many jobs this line stands for.")
    asked: RequestedResourcesOut
    nodes: list[str] = Field(description="Where it runs.")
    submitted: float | None
    started: float | None
    ends: float | None = Field(description="At the latest.")
    expected_start: float | None = Field(description="The scheduler's own estimate.")
    priority: float | None = Field(description="Of a waiting job, on the scheduler's own scale; higher starts first. Null: unknown.")
    factors: str = Field(description="What its priority is made of, if the scheduler reports it.")
    reason: str = Field(description="Why it waits, in plain words.")
    native: str = Field(description="The scheduler's own reason.")
    in_line: bool = Field(description="It waits only for free resources, which may go to it first.")


class TotalOut(BaseModel):
    what: str = Field(description="`cpus`, `mem`, or a type of GPU as `gpu:TYPE`.")
    used: int
    total: int


class OpeningOut(BaseModel):
    """What could start now in one queue: this many nodes with this much free on each."""

    queue: str
    nodes: int
    cpus: int
    mem: int
    gpus: int
    gpu_type: str
    time_limit: int | None
    ahead: int = Field(description="Jobs ahead in the queue.")


class ClusterPicture(ClusterOut):
    schema_: Literal[1] = Field(alias="schema", description="Increased when a key changes its meaning.")
    taken_at: float | None = Field(
        description="When the scheduler reported this; null: it has not answered yet, and the snapshot is empty."
    )
    age: float = Field(description="Seconds since the scheduler reported this.")
    trouble: str = Field(description="Why there is nothing newer, or nothing at all; empty: no problem.")
    user: str = Field(description="Whose jobs are `mine`.")
    totals: list[TotalOut]
    nodes: list[ClusterNodeOut]
    queues: list[QueueOut]
    jobs: list[ClusterJobOut] = Field(description="Mine first, running before waiting ones.")
    jobs_total: int = Field(description="How many there are, shown or not.")
    openings: list[OpeningOut]
    notes: list[str] = Field(description="What this snapshot leaves out.")
