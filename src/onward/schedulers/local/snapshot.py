"""This machine as a cluster of one node: what the local queue hands out, and to whom."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence

from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Gpus, Node, NodeState, Queue, by_use, in_order
from onward.model.job import JobState, JobStatus
from onward.schedulers.local.job_queue import JobRecord, LocalJob
from onward.schedulers.local.machine import MachineCapacity

QUEUE = "local"


def take_snapshot(
    machine: MachineCapacity,
    gpu_types: Mapping[str, str],
    jobs: Sequence[tuple[LocalJob, JobRecord | None, JobStatus]],
    *,
    host: str,
    now: float,
) -> ClusterSnapshot:
    """Jobs that ended while we looked are left out."""
    live = [(job, record, status) for job, record, status in jobs if status.state.live]
    running = [(job.request, record.gpus if record else ()) for job, record, status in live if status.state is JobState.RUNNING]
    left = machine.without(running)
    node = Node(
        name=host,
        state=NodeState.FREE,
        cpus=machine.cpus,
        cpus_used=machine.cpus - left.cpus,
        mem=machine.mem,
        mem_used=machine.mem - left.mem,
        gpus=_gpus(machine.gpus, gpu_types, free=left.gpus),
    )
    user = _user()
    return ClusterSnapshot(
        scheduler="local",
        taken_at=now,
        user=user,
        nodes=(by_use(node),),
        queues=(Queue(name=QUEUE, nodes=(host,), default=True),),
        jobs=in_order([_job(*one, user=user, host=host, machine=machine, gpu_types=gpu_types) for one in live]),
        notes=("processes outside the local queue are not counted",),
    )


def _job(
    job: LocalJob,
    record: JobRecord | None,
    status: JobStatus,
    *,
    user: str,
    host: str,
    machine: MachineCapacity,
    gpu_types: Mapping[str, str],
) -> ClusterJob:
    runs = status.state is JobState.RUNNING
    given = record.gpus if record and runs else ()
    request = job.request
    wanted = machine.gpus_for(request)
    return ClusterJob(
        id=status.id,
        name=status.name,
        user=user,
        mine=True,
        state=status.state,
        queue=QUEUE,
        asked=Asked(
            cpus=request.cpus,
            mem=None if request.mem is None else machine.memory_for(request),
            gpus=_gpus(given, gpu_types, free=given) if given else (Gpus(total=wanted),) if wanted else (),
            time=request.time,
        ),
        nodes=(host,) if runs else (),
        submitted=status.submitted,
        started=status.started,
        ends=record.deadline if record and runs else None,
        reason="" if runs else status.reason,
        native="" if runs else status.reason,
        in_line=status.state is JobState.QUEUED,
    )


def _gpus(numbers: Sequence[str], types: Mapping[str, str], *, free: Sequence[str]) -> tuple[Gpus, ...]:
    """By type. `free`: those of them that no job holds."""
    kinds = sorted({types.get(number, "") for number in numbers})
    of_type = {kind: [number for number in numbers if types.get(number, "") == kind] for kind in kinds}
    return tuple(Gpus(type=kind, total=len(mine), used=sum(1 for number in mine if number not in free)) for kind, mine in of_type.items())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose passwd file does not know us
        return str(os.getuid())
