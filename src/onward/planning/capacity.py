"""What could start now: the largest shapes that are free, queue by queue.

Free is not promised. A job that waits for room may be given it first, so an opening says how many of those there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onward.model.cluster import ClusterSnapshot, Node, Queue


@dataclass(frozen=True, kw_only=True)
class CapacityOpening:
    """`nodes` nodes with so much free on each, in one queue. Without GPUs, or with those of one type."""

    queue: str
    nodes: int
    cpus: int  # a node
    mem: int  # MiB a node; 0: the scheduler does not count it
    gpus: int = 0  # a node
    gpu_type: str = ""
    time_limit: int | None = None  # seconds
    ahead: int = 0  # jobs that wait for room in this queue


def what_could_start(snapshot: ClusterSnapshot) -> tuple[CapacityOpening, ...]:
    """For each queue that starts jobs: the largest shape without GPUs, and the largest with each type of them."""
    nodes = {node.name: node for node in snapshot.nodes if node.state.takes_jobs}
    found: list[CapacityOpening] = []
    lines = _in_line(snapshot)
    for queue in snapshot.queues:
        free = [nodes[name] for name in queue.nodes if name in nodes and name not in queue.closed_on and nodes[name].cpus_free]
        if queue.open and free:
            ahead = lines.get(queue.name, 0) + lines.get("", 0)
            kinds = sorted({gpu.type for node in free for gpu in node.gpus if gpu.free})
            found += [_largest(queue, free, kind, ahead) for kind in (None, *kinds)]
    return tuple(found)


def _largest(queue: Queue, free: list[Node], kind: str | None, ahead: int) -> CapacityOpening:
    """The best single node, and how many are at least as good."""
    able = [node for node in free if kind is None or _gpus_free(node, kind)]
    sizes = [_size(queue, node, kind) for node in able]
    gpus, cpus, mem = max(sizes)
    alike = sum(1 for size in sizes if all(have >= want for have, want in zip(size, (gpus, cpus, mem), strict=True)))
    return CapacityOpening(
        queue=queue.name,
        nodes=min(alike, queue.max_nodes or alike),
        cpus=cpus,
        mem=mem,
        gpus=gpus,
        gpu_type=kind or "",
        time_limit=queue.time_limit,
        ahead=ahead,
    )


def _size(queue: Queue, node: Node, kind: str | None) -> tuple[int, int, int]:
    cpus = min(node.cpus_free, queue.max_cpus or node.cpus_free)
    mem = min(node.mem_free, queue.max_mem or node.mem_free)
    return _gpus_free(node, kind) if kind is not None else 0, cpus, mem


def _gpus_free(node: Node, kind: str) -> int:
    return sum(gpu.free for gpu in node.gpus if gpu.type == kind)


def _in_line(snapshot: ClusterSnapshot) -> dict[str, int]:
    """Queue → jobs in line for it, in one pass. One that may go to several is in the way in each; one that names none (""), in all."""
    found: dict[str, int] = {}
    for job in snapshot.jobs:
        for name in set(job.queue.split(",")) if job.in_line else ():
            found[name] = found.get(name, 0) + job.tasks
    return found


def totals(nodes: Iterable[Node]) -> dict[str, tuple[int, int]]:
    """Used and total over nodes: `cpus`, `mem`, and each GPU type as `gpu:TYPE`."""
    by_name: dict[str, tuple[int, int]] = {}

    def add(key: str, used: int, total: int) -> None:
        before = by_name.get(key, (0, 0))
        by_name[key] = (before[0] + used, before[1] + total)

    for node in nodes:
        add("cpus", node.cpus_used, node.cpus)
        add("mem", node.mem_used, node.mem)
        for gpu in node.gpus:
            add(f"gpu:{gpu.type}", gpu.used, gpu.total)
    return by_name
