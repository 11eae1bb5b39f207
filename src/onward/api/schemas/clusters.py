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
    host: str | None = Field(description="The ssh host through which it is asked; null: from here.")
    auto: bool = Field(description="It is what the name `auto` means here.")


class ClusterList(BaseModel):
    clusters: list[ClusterOut]


class GpusOut(BaseModel):
    """GPUs of one type."""

    type: str = Field(description="Empty where the scheduler does not tell types apart.")
    total: int
    used: int = Field(description="Handed out.")


class ClusterNodeOut(BaseModel):
    name: str
    state: Literal["free", "partly", "full", "draining", "drained", "down", "reserved", "unknown"]
    why: str = Field(description="It takes no jobs.")
    cpus: int
    cpus_used: int = Field(description="Handed out; not how busy they are.")
    mem: int
    mem_used: int
    gpus: list[GpusOut]


class QueueOut(BaseModel):
    """A partition or queue. A limit that is null does not exist."""

    name: str
    nodes: list[str]
    closed_on: list[str] = Field(description="Of these nodes, where it starts no jobs for now.")
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
    """What a job asked for in all, or got once it runs."""

    nodes: int
    cpus: int
    mem: int | None
    gpus: list[GpusOut]
    time: int | None = Field(description="Seconds.")


class ClusterJobOut(BaseModel):
    id: str
    name: str
    user: str
    mine: bool = Field(description="Of the user who asks the scheduler: the server's, or the ssh login's.")
    state: JobWord
    queue: str = Field(description="Several with commas between them where it may go to several; empty where it names none.")
    tasks: int = Field(description="Of an array, those that this line stands for.")
    asked: RequestedResourcesOut
    nodes: list[str] = Field(description="Where it runs.")
    submitted: float | None
    started: float | None
    ends: float | None = Field(description="At the latest.")
    expected_start: float | None = Field(description="The scheduler's own estimate.")
    reason: str = Field(description="Why it waits, in plain words.")
    native: str = Field(description="The scheduler's own word for that.")
    in_line: bool = Field(description="It waits for room and nothing else: what is free may go to it first.")


class TotalOut(BaseModel):
    what: str = Field(description="`cpus`, `mem`, or a type of GPU as `gpu:TYPE`.")
    used: int
    total: int


class OpeningOut(BaseModel):
    """What could start now in one queue: so many nodes with so much free on each."""

    queue: str
    nodes: int
    cpus: int
    mem: int
    gpus: int
    gpu_type: str
    time_limit: int | None
    ahead: int = Field(description="Jobs in line before.")


class ClusterPicture(ClusterOut):
    schema_: Literal[1] = Field(alias="schema", description="Raised when a key changes its meaning.")
    taken_at: float | None = Field(description="When the scheduler told this; null: it has told nothing yet, and the picture is empty.")
    age: float = Field(description="Seconds since the scheduler told this.")
    trouble: str = Field(description="Why it is not newer, or why there is none; empty: nothing is wrong.")
    user: str = Field(description="Whose jobs are `mine`.")
    totals: list[TotalOut]
    nodes: list[ClusterNodeOut]
    queues: list[QueueOut]
    jobs: list[ClusterJobOut] = Field(description="Mine first, those that run before those that wait.")
    jobs_total: int = Field(description="How many there are, shown or not.")
    openings: list[OpeningOut]
    notes: list[str] = Field(description="What this picture leaves out.")
