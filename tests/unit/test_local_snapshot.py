"""This machine as a cluster of one node."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.model.cluster import Gpus, NodeState
from onward.model.job import JobId, JobState, JobStatus
from onward.schedulers.local.job_queue import JobRecord, LocalJob
from onward.schedulers.local.machine import MachineCapacity, gpu_types_here
from onward.schedulers.local.resource_request import ResourceRequest
from onward.schedulers.local.scheduler import LocalScheduler
from onward.schedulers.local.snapshot import take_snapshot

MACHINE = MachineCapacity(cpus=8, mem=16_000, gpus=("0", "1", "2"))
TYPES = {"0": "A100", "1": "A100", "2": "T4"}


def entry(
    number: int, state: JobState, *, request: ResourceRequest, record: JobRecord | None = None
) -> tuple[LocalJob, JobRecord | None, JobStatus]:
    job = LocalJob(id=JobId(str(number)), name=f"job{number}", after=None, submitted=1.0, request=request, folder="/", umask=0o077)
    status = JobStatus(
        id=job.id, name=job.name, state=state, reason="needs 8 CPUs, 4 free" if state is JobState.QUEUED else "", submitted=1.0
    )
    return job, record, status


def test_what_running_jobs_hold_is_taken_off_by_type_of_gpu() -> None:
    runs = entry(
        1,
        JobState.RUNNING,
        request=ResourceRequest(cpus=4, mem=4000, gpus=2, time=60),
        record=JobRecord(state=JobState.RUNNING, started=5.0, deadline=65.0, gpus=("1", "2")),
    )
    waits = entry(2, JobState.QUEUED, request=ResourceRequest(cpus=8, mem=0, gpus=1))
    over = entry(3, JobState.FINISHED, request=ResourceRequest())
    taken = take_snapshot(MACHINE, TYPES, [waits, runs, over], host="box", now=9.0)
    [node] = taken.nodes
    assert (node.name, node.state, node.cpus_free, node.mem_free) == ("box", NodeState.PARTLY, 4, 12_000)
    assert node.gpus == (Gpus(type="A100", total=2, used=1), Gpus(type="T4", total=1, used=1))
    first, second = taken.jobs
    assert (first.id, first.ends, first.nodes) == ("1", 65.0, ("box",))
    assert first.asked.gpus == (Gpus(type="A100", total=1), Gpus(type="T4", total=1))
    assert (second.reason, second.in_line, second.asked.mem, second.asked.gpus) == ("needs 8 CPUs, 4 free", True, 16_000, (Gpus(total=1),))


def test_a_job_that_asks_for_no_number_of_gpus_waits_for_all() -> None:
    [job] = take_snapshot(MACHINE, TYPES, [entry(1, JobState.QUEUED, request=ResourceRequest(all_gpus=True))], host="box", now=9.0).jobs
    assert job.asked.gpus == (Gpus(total=3),)


def test_an_empty_queue_is_a_free_machine(tmp_path: Path) -> None:
    taken = LocalScheduler(tmp_path / "state", cpus=4, mem=1000, gpus=("0",)).snapshot()
    assert (taken.jobs, [node.state for node in taken.nodes]) == ((), [NodeState.FREE])
    assert [(gpu.total, gpu.used) for gpu in taken.nodes[0].gpus] == [(1, 0)]


def test_the_types_of_gpus_are_nvidia_smis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)'\necho 'GPU 1: Tesla T4 (UUID: GPU-2)'\n")
    program.chmod(0o755)
    assert gpu_types_here() == {"0": "A100-SXM4-40GB", "1": "Tesla T4"}
    program.write_text("#!/bin/sh\nexit 9\n")
    assert gpu_types_here() == {}
