"""Machine: how much of everything the local queue may hand out, and what is left of it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from onward.errors import SchedulerUnavailable
from onward.model.quantity import counted
from onward.schedulers.command import run_command
from onward.schedulers.local.resource_request import ResourceRequest

# A container's memory limit, where there is one: version 2 of control groups, then version 1.
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, kw_only=True)
class MachineCapacity:
    cpus: int
    mem: int  # MiB
    gpus: tuple[str, ...] = ()

    def memory_for(self, request: ResourceRequest) -> int:
        """MiB that a job takes up: `0` asked for all, nothing asked takes none."""
        return self.mem if request.mem == 0 else request.mem or 0

    def gpus_for(self, request: ResourceRequest) -> int:
        return len(self.gpus) if request.all_gpus else request.gpus

    def without(self, taken: Iterable[tuple[ResourceRequest, tuple[str, ...]]]) -> MachineCapacity:
        """What is left while these jobs run, each with the GPUs it was given."""
        jobs = list(taken)
        busy = {gpu for _, gpus in jobs for gpu in gpus}
        return MachineCapacity(
            cpus=self.cpus - sum(request.cpus for request, _ in jobs),
            mem=self.mem - sum(self.memory_for(request) for request, _ in jobs),
            gpus=tuple(gpu for gpu in self.gpus if gpu not in busy),
        )

    def shortage(self, request: ResourceRequest, left: MachineCapacity) -> str:
        """Why a job cannot start with what is left; nothing if it can."""
        mem = self.memory_for(request)
        if request.cpus > left.cpus:
            return f"needs {counted(request.cpus, 'CPU')}, {max(left.cpus, 0)} free"
        if mem > left.mem:
            return f"needs {mem} MiB of memory, {max(left.mem, 0)} MiB free"
        if self.gpus_for(request) > len(left.gpus):
            needs = (
                f"gets all {len(self.gpus)} GPUs, as no number was asked" if request.all_gpus else f"needs {counted(request.gpus, 'GPU')}"
            )
            return f"{needs}, {len(left.gpus)} free"
        return ""

    def excess(self, request: ResourceRequest) -> str:
        """Why a job could never start here; nothing if it could."""
        if request.cpus > self.cpus:
            return f"it requests {counted(request.cpus, 'CPU')}, but this machine has {self.cpus}"
        if (request.mem or 0) > self.mem:
            return f"it requests {request.mem} MiB of memory, but this machine has {self.mem} MiB"
        if request.gpus > len(self.gpus):
            return f"it requests {counted(request.gpus, 'GPU')}, but this machine has {len(self.gpus)}"
        return ""


def cpus_here() -> int:
    """Those this process may use: a container or a batch job may have been given fewer than there are."""
    return len(os.sched_getaffinity(0))


def mem_here() -> int:
    figures = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _MEMORY_LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        figures += [int(text)] if text.isdecimal() else []
    return min(figures) // 2**20


def gpus_here() -> tuple[str, ...] | None:
    """The GPUs' numbers in nvidia-smi's order. `None`: nvidia-smi is here but did not answer, which may pass."""
    if shutil.which("nvidia-smi") is None:
        return ()
    try:
        answer = run_command(["nvidia-smi", "-L"], timeout=30)
    except SchedulerUnavailable:
        return None
    return tuple(re.findall(r"^GPU (\d+):", answer.out, re.MULTILINE)) if answer.code == 0 else None


def gpu_types_here() -> dict[str, str]:
    """GPU number → what it is, as in `0: A100-SXM4-40GB`. Nothing where nvidia-smi is not here or does not answer."""
    if shutil.which("nvidia-smi") is None:
        return {}
    try:
        answer = run_command(["nvidia-smi", "-L"], timeout=30)
    except SchedulerUnavailable:
        return {}
    return dict(re.findall(r"^GPU (\d+): (?:NVIDIA )?(.+?) \(UUID", answer.out, re.MULTILINE))
