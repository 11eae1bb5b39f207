"""What a job can get at most: a request cut down to the largest node of its cluster, with a GPU where the cluster has any."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onward.model.cluster import ClusterSnapshot, Node
from onward.model.quantity import format_size
from onward.model.spec import Resources


@dataclass(frozen=True, kw_only=True)
class FittedResources:
    resources: Resources
    notes: tuple[str, ...] = ()  # what it gets less of than it asked for


def fit_to_cluster(asked: Resources, snapshot: ClusterSnapshot, *, gpus: int) -> FittedResources:
    """`gpus`: how many it gets on a node if it says nothing of GPUs and there are any. What is not known of a cluster changes nothing."""
    nodes = _nodes(asked, snapshot)
    most = max((_gpus(node) for node in nodes), default=0)
    wanted = replace(asked, gpus=str(min(gpus, most))) if gpus and most and not asked.asks_gpus() else asked
    able = [node for node in nodes if _gpus(node) >= wanted.gpu_count()]
    notes: list[str] = []
    mem = max((node.mem for node in able), default=0)
    if wanted.mem and mem and wanted.mem > mem:
        notes.append(f"it got {format_size(mem)} of memory instead of {format_size(wanted.mem)}: no node has more")
        wanted = replace(wanted, mem=mem)
    cpus = max((node.cpus for node in able if not (wanted.mem and node.mem) or node.mem >= wanted.mem), default=0)
    if wanted.cpus_per_task and cpus and wanted.cpus_per_task > cpus:
        notes.append(f"it got {cpus} CPUs instead of {wanted.cpus_per_task}: no node with its memory has more")
        wanted = replace(wanted, cpus_per_task=cpus)
    return FittedResources(resources=wanted, notes=tuple(notes))


def _nodes(asked: Resources, snapshot: ClusterSnapshot) -> list[Node]:
    """Of the queues it names, else of the default one, else of all. A node that is down today counts: it will be back."""
    named = set(asked.partition.split(",")) if asked.partition else {queue.name for queue in snapshot.queues if queue.default}
    names = {name for queue in snapshot.queues if queue.name in named for name in queue.nodes}
    return [node for node in snapshot.nodes if not names or node.name in names]


def _gpus(node: Node) -> int:
    return sum(gpu.total for gpu in node.gpus)
